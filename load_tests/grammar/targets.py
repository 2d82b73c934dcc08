"""From the figures of all parts to what was promised; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from deployments.reporting.quantiles import median, quantile, ratio
from deployments.reporting.report import Target
from load_tests.grammar.messages import Measured

SLOW_MS = 200.0
"""Grammars that compile in more than this are the ones that sharing is for."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the parts measured: `pool` and `ready` once a turn and case, `codec` once a case."""

    pool: Sequence[Measured]
    codec: Sequence[Measured]
    ready: Sequence[Measured]


@dataclass(frozen=True, slots=True)
class ReadyCase:
    """Medians over turns, in ms; `fetch_ms` None where the bare tables could not be had."""

    name: str
    backend: str
    ours_ms: float
    compile_ms: float
    fetch_ms: float | None

    @property
    def oracle_ms(self) -> float:
        return self.compile_ms if self.fetch_ms is None else min(self.compile_ms, self.fetch_ms)

    @property
    def is_slow(self) -> bool:
        return self.compile_ms > SLOW_MS


def targets(figures: Figures) -> list[Target]:
    """Every promise, in the order of the parts."""
    return [*codec_targets(figures.codec), *ready_targets(ready_cases(figures.ready)), *pool_targets(figures.pool)]


def codec_targets(rows: Iterable[Measured]) -> list[Target]:
    """Sizes of payloads as they travel, and times of tables. "Shared" are the grammars that travel as tables; for the others, whose
    payload is a recipe, times are those that their tables would take."""
    everything = [row for row in rows if row.number("json_bytes") is not None]
    shared = [row for row in everything if row.values.get("holds_tables")]
    return [*_codec_targets("shared tables", shared), *_codec_targets("all grammars", everything)]


def _codec_targets(which: str, rows: Sequence[Measured]) -> list[Target]:
    p90s = ratio(_p90(rows, "json_bytes"), _p90(rows, "payload_bytes"))
    apiece = quantile(_ratios(rows, "json_bytes", "payload_bytes"), 0.9)
    found = [
        Target.at_least(f"{which}: serialize_json bytes / ours, of p90s", p90s, 10, "×"),
        Target.at_least(f"{which}: serialize_json bytes / ours, p90", apiece, 10, "×"),
    ]
    for what, ours, bare, bound in (
        ("decode / deserialize_json", "decode_ms", "deserialize_ms", 1.3),
        ("encode / serialize_json", "encode_ms", "serialize_ms", 1.5),
    ):
        found.append(Target.at_most(f"{which}: {what}, median", median(_ratios(rows, ours, bare)), bound, "×"))
        found.append(Target.at_most(f"{which}: {what}, total", ratio(_total(rows, ours), _total(rows, bare)), bound, "×"))
    return found


def ready_cases(rows: Iterable[Measured]) -> list[ReadyCase]:
    """One a case that was measured in full."""
    turns: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        if row.fault is None:
            turns[row.case].append(row)
    return [_ready_case(name, measured) for name, measured in turns.items()]


def ready_targets(cases: Sequence[ReadyCase]) -> list[Target]:
    """Against the oracle that knows the better of fetching and compiling for each grammar, and against compiling the slow ones."""
    on_xgrammar = [case for case in cases if case.backend == "xgrammar"]
    speedups = [case.compile_ms / case.ours_ms for case in cases if case.is_slow]
    return [
        Target.at_most("ready to mask / oracle, total", _over_oracle(cases), 1.1, "×"),
        Target.at_most("ready to mask / oracle, total on xgrammar", _over_oracle(on_xgrammar), 1.1, "×"),
        Target.at_least(f"compile / ready to mask, over {SLOW_MS:g} ms, median", median(speedups), 3, "×"),
    ]


def pool_targets(rows: Iterable[Measured]) -> list[Target]:
    """Cold grammars' first masks where llguidance helps, and hits in memory."""
    measured = list(rows)
    quick = [row.number("cold_ms") or 0.0 for row in measured if row.values.get("quick")]
    hits = [hit for row in measured if (hit := row.number("hit_ms")) is not None]
    return [
        Target.at_most("cold first mask on llguidance, p50", quantile(quick, 0.5), 5, "ms"),
        Target.at_most("cold first mask on llguidance, p99", quantile(quick, 0.99), 50, "ms"),
        Target.at_most("hit in memory, in process, median", median(hits), 1, "ms"),
    ]


def _ready_case(name: str, turns: Sequence[Measured]) -> ReadyCase:
    def middle(figure: str) -> float | None:
        return median(number for row in turns if (number := row.number(figure)) is not None)

    return ReadyCase(name, str(turns[0].values["backend"]), middle("ours_ms") or 0.0, middle("compile_ms") or 0.0, middle("fetch_ms"))


def _over_oracle(cases: Sequence[ReadyCase]) -> float | None:
    return ratio(_sum(cases, lambda case: case.ours_ms), _sum(cases, lambda case: case.oracle_ms))


def _sum(cases: Iterable[ReadyCase], figure: Callable[[ReadyCase], float]) -> float:
    return sum(map(figure, cases))


def _ratios(rows: Iterable[Measured], part: str, whole: str) -> list[float]:
    found = (ratio(row.number(part), row.number(whole)) for row in rows)
    return [value for value in found if value is not None]


def _p90(rows: Iterable[Measured], figure: str) -> float | None:
    return quantile((row.number(figure) or 0.0 for row in rows), 0.9)


def _total(rows: Iterable[Measured], figure: str) -> float:
    return sum(row.number(figure) or 0.0 for row in rows)
