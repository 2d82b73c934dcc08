"""Who asks for what, and when: synthetic or recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from router.fleet import Floats


@dataclass(frozen=True, slots=True)
class Request:
    """`at_s` from the start of the simulation; `key` None where nothing constrains the output. Prompts of one `prefix` have their first
    `prefix_tokens` in common; without one they have none."""

    name: str
    at_s: float
    key: str | None
    prompt_tokens: int
    output_tokens: int
    prefix: str = ""
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Burst:
    """`requests` with one grammar, that of rank `schema` in popularity, within `within_s` from `at_s` on, in handfuls of `handful`."""

    at_s: float
    requests: int
    schema: int
    within_s: float = 0.2
    handful: int = 16


@dataclass(frozen=True, slots=True)
class Traffic:
    """Poisson arrivals at `rate` a second for `seconds`; the schema of popularity rank r is asked for in proportion to r^-zipf, and
    a share `unkeyed` asks for none. Prompts and outputs vary log-normally about their medians, of which each schema has its own.
    The prompts for a schema begin in one of `prefixes` ways, those for none in one of `unkeyed_prefixes`, for a share `prefixed`. Where
    there are `shared_prefixes`, all prompts begin in one of so many ways, whatever their schema."""

    seconds: float
    rate: float
    schemas: int
    zipf: float = 1.0
    unkeyed: float = 0.1
    prompt_tokens: int = 300
    output_tokens: int = 120
    bursts: Sequence[Burst] = ()
    prefixes: int = 4
    unkeyed_prefixes: int = 200
    prefixed: float = 0.5
    shared_prefixes: int = 0


def arrivals(traffic: Traffic, seed: int) -> list[Request]:
    """In the order of time; the same for the same seed."""
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(0, traffic.seconds, random.poisson(traffic.rate * traffic.seconds)))
    shares = np.arange(1, traffic.schemas + 1) ** -traffic.zipf
    ranks = random.choice(traffic.schemas, len(times), p=shares / shares.sum())
    ranks[random.random(len(times)) < traffic.unkeyed] = -1
    sudden = [(at_s, burst.schema) for burst in traffic.bursts for at_s in _times(burst)]
    when = np.concatenate([times, [at_s for at_s, _ in sudden]])
    which = np.concatenate([ranks, [rank for _, rank in sudden]]).astype(int)
    order = np.argsort(when, kind="stable")
    return list(_requests(traffic, when[order], which[order], random, seed))


def read_trace(path: Path) -> list[Request]:
    """One JSON object a line: `at_s`, `key` (or null), `prompt_tokens`, `output_tokens`, and perhaps `prefix`, `prefix_tokens`. Raises
    ValueError: a line is no request. OSError."""
    with path.open(encoding="utf-8") as lines:
        recorded = [_recorded(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return sorted(recorded, key=lambda request: request.at_s)


def _times(burst: Burst) -> Iterator[float]:
    handfuls = -(-burst.requests // burst.handful)
    for number in range(burst.requests):
        yield burst.at_s + burst.within_s * (number // burst.handful) / handfuls


def _requests(
    traffic: Traffic, times: Floats, ranks: np.ndarray[tuple[int, ...], np.dtype[np.int_]], random: np.random.Generator, seed: int
) -> Iterator[Request]:
    own = random.lognormal(0, 0.4, (traffic.schemas + 1, 2))
    single = random.lognormal(0, 0.2, (len(times), 2))
    sizes = np.maximum(1, own[ranks] * single * (traffic.prompt_tokens, traffic.output_tokens)).astype(int)
    ways = traffic.shared_prefixes or np.where(ranks < 0, traffic.unkeyed_prefixes, traffic.prefixes)
    begins = (random.random(len(times)) * ways).astype(int)
    rows = zip(times.tolist(), ranks.tolist(), sizes.tolist(), begins.tolist(), strict=True)
    for number, (at_s, rank, (prompt, output), begin) in enumerate(rows):
        key = None if rank < 0 else f"schema-{seed}-{rank}"
        prefix = f"shared-{begin}" if traffic.shared_prefixes else f"{key}-{begin}"
        yield Request(str(number), at_s, key, prompt, output, prefix, int(traffic.prefixed * prompt))


def _recorded(number: int, line: str) -> Request:
    try:
        tree = json.loads(line)
        key = tree["key"]
        request = Request(
            str(number),
            float(tree["at_s"]),
            None if key is None else str(key),
            int(tree["prompt_tokens"]),
            int(tree["output_tokens"]),
            str(tree.get("prefix", "")),
            int(tree.get("prefix_tokens", 0)),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"line {number} is no request with at_s, key, prompt_tokens and output_tokens: {error!r}") from None
    if (
        request.prompt_tokens < 1
        or request.output_tokens < 1
        or request.at_s < 0
        or not 0 <= request.prefix_tokens <= request.prompt_tokens
    ):
        raise ValueError(f"line {number} has a time below 0, no tokens, or a beginning longer than its prompt")
    return request
