"""`python -m load_tests.event_loop`: what the worst bodies of each size make an ingress's event loop do, in processor time.

Bodies of up to 16 KiB are parsed and read on the loop, which costs less than to hand them to a thread. Larger ones are parsed and read in a
thread; measured is how long another thread waits for the GIL meanwhile. A schema is
resolved on the loop where that is quick whatever it says, and in the sandbox otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.api.bounds.body import parse_body
from deployments.api.bounds.reading import built_bytes
from deployments.api.bounds.request_limits import LARGE_BODY
from deployments.api.call_facts import CallFacts
from deployments.api.protocol import RequestReader
from deployments.api.translation import messages_request, responses_request
from deployments.config import LimitSettings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.errors import ApiError
from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits
from grammar_service.resolve import resolve, resolves_quickly
from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.event_loop.worst import BLOCKS, BODIES, CONSTRAINTS, ITEMS
from model_service.messages import Endpoint

PACKAGES = ("maskcast", "msgspec", "numpy")
SIZES = (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20)
"""Bytes, the last as many as `http.max_body_mib` allows by default."""
CHUNK = 256 << 10
"""Bytes that an event loop reads at a time."""
MOST_MS = 10.0
MOST_HELD_MS = 50.0
"""For large bodies: what is done beside the loop holds the GIL, and with it the loop, in single calls of C code."""
BEAT_S = 0.0005
READER, FACTS, LIMITS = RequestReader("model", "hermes", ConstraintDefaults()), CallFacts(2048), LimitSettings()


def main(
    tries: Annotated[int, typer.Option(min=1, help="of each; the fastest counts, as the machine has other work")] = 5,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure the worst bodies and constraints of each size."""
    rows = [*_bodies(tries), *_constraints(tries)]
    report = BenchReport.here(f"python -m load_tests.event_loop --tries {tries}", PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def targets(rows: list[Row]) -> list[Target]:
    found = []
    for size in sorted({row["bytes"] for row in rows if row["what"] == "body"}):
        worst = max((row for row in rows if row["what"] == "body" and row["bytes"] == size), key=lambda row: row["loop_ms"])
        name = f"bodies of {size >> 10} KiB: the event loop's longest piece of work ({worst['name']})"
        found.append(Target.at_most(name, worst["loop_ms"], MOST_MS, "ms"))
    for size in sorted({row["bytes"] for row in rows if row["what"] == "large body"}):
        worst = max((row for row in rows if row["what"] == "large body" and row["bytes"] == size), key=lambda row: row["held_ms"])
        name = f"bodies of {size >> 10} KiB: how long the event loop waits for a thread ({worst['name']})"
        found.append(Target.at_most(name, worst["held_ms"], MOST_HELD_MS, "ms"))
    quick = [row for row in rows if row["what"] == "constraint" and row["on_loop"]]
    slowest = max(quick, key=lambda row: row["loop_ms"])
    return [*found, Target.at_most(f"constraints resolved on the loop ({slowest['name']})", slowest["loop_ms"], MOST_MS, "ms")]


def _bodies(tries: int) -> Iterator[Row]:
    for size in SIZES:
        for name, make in BODIES.items():
            raw = make(size)
            pieces = {"memory": _fastest(tries, partial(built_bytes, raw[:CHUNK]))}
            if len(raw) <= LARGE_BODY:
                pieces["parse"] = _fastest(tries, partial(parse_body, raw, LIMITS))
            with suppress(ApiError):
                body, translate = parse_body(raw, LIMITS), TRANSLATIONS.get(name, dict)
                if len(raw) <= LARGE_BODY:
                    pieces["translate"] = _fastest(tries, partial(translate, body))
                body = translate(body)
                pieces["facts"] = _fastest(tries, partial(FACTS.prompt, body))
                if len(raw) <= LARGE_BODY:
                    pieces["read"] = _fastest(tries, partial(READER.read, _endpoint(body), body))
            worst = max(pieces, key=lambda piece: pieces[piece])
            yield {"what": "body", "name": name, "bytes": size, "piece": worst, "loop_ms": round(pieces[worst], 2)}
            if len(raw) > LARGE_BODY:
                held_ms = min(_held_ms(partial(_parse_and_read, raw, TRANSLATIONS.get(name, dict))) for _ in range(tries))
                yield {"what": "large body", "name": name, "bytes": size, "held_ms": round(held_ms, 2)}


def _constraints(tries: int) -> Iterator[Row]:
    for number, (name, (kind, make)) in enumerate(CONSTRAINTS.items()):
        for size in (256, 512, 1000, 4000, 16_000):
            specs = [GrammarSpec(GrammarKind(kind), make(size, 1000 * number + attempt)) for attempt in range(tries)]
            on_loop = resolves_quickly(specs[0])
            taken = min(_fastest(1, partial(resolve, spec, Limits(), "benchmark")) for spec in specs)
            yield {"what": "constraint", "name": name, "bytes": len(specs[0].text), "on_loop": on_loop, "loop_ms": round(taken, 2)}


def _parse_and_read(raw: bytes, translate: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    with suppress(ApiError):
        body = translate(parse_body(raw, LIMITS))
        READER.read(_endpoint(body), body)


def _of_response(body: dict[str, Any]) -> dict[str, Any]:
    messages = responses_request.messages_of(body, (), responses_request.input_items(body))
    return {**responses_request.chat_options(body, strict=True), "messages": [message for _, message in messages]}


def _of_message(body: dict[str, Any]) -> dict[str, Any]:
    options, _ = messages_request.chat_options(body, reasons=True)
    return {**options, "messages": [message for _, message in messages_request.messages_of(body)]}


TRANSLATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {ITEMS: _of_response, BLOCKS: _of_message}


def _held_ms(act: Callable[[], object]) -> float:
    """The longest time that another thread waits while `act` runs. Wall clock: the fastest of several runs counts."""
    begun, is_over, longest = Event(), Event(), 0.0

    def beat() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not is_over.is_set():
            begun.set()
            time.sleep(BEAT_S)
            now = time.perf_counter()
            last, longest = now, max(longest, now - last)

    other = Thread(target=beat)
    other.start()
    begun.wait()
    act()
    is_over.set()
    other.join()
    return 1000 * longest


def _endpoint(body: dict[str, Any]) -> Endpoint:
    return Endpoint.CHAT if "messages" in body else Endpoint.COMPLETION


def _fastest(tries: int, act: Callable[[], object]) -> float:
    """In milliseconds of this thread's processor time."""
    taken = []
    for _ in range(tries):
        begun = time.thread_time()
        with suppress(ApiError, GrammarError):
            act()
        taken.append(time.thread_time() - begun)
    return 1000 * min(taken)


if __name__ == "__main__":
    typer.run(main)
