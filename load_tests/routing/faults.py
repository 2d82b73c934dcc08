"""`python -m load_tests.routing.faults`: what clients notice when a replica is killed, when one joins, and when one hangs.

A service with its Redis, as `maskcast serve` starts it, is asked over HTTP for a handful of grammars, all the time. A replica's process is
killed; the one that replaces it joins; another one, with its engine, is suspended and goes on. Traffic is back when every grammar has been
answered to somebody who asked for it after the event, and again and again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

import psutil
import typer
from ray import serve
from rich.console import Console

from deployments.local.environment import environment
from deployments.names import APPLICATION, MODEL
from deployments.reporting.quantiles import ratio
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.reporting.running_service import ONE_THREAD, PACKAGES, running_service
from load_tests.routing import traffic
from load_tests.routing.callers import Call, back_s, calling
from load_tests.routing.clients import compile_all
from load_tests.routing.page import ALL_METRICS, Page, ReplicaFigures, page_of, settled_page

REPLICA = f"ServeReplica:{APPLICATION}:{MODEL}"
GRAMMARS, MAX_TOKENS = 24, 24
FEW, MANY = 2, 40
"""Clients: so few that no replica is over its share, or grammars would be loaded elsewhere that have not moved; and so many that all are
busy."""
ROUNDS = 5
"""In each of which every grammar is answered to somebody who asks in it. The slowest one after an event counts: a replica that hangs may
slow down later ones than the first."""
BACK_S, GIVE_UP_S, JOIN_S, LOOK_S = 10.0, 60.0, 240.0, 0.1
KILLED, JOINED, HUNG = EVENTS = ("killed", "joined", "hung")
T = TypeVar("T")


def main(
    replicas: Annotated[int, typer.Option(min=2, help="model replicas")] = 4,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Kill a replica, let one join, and suspend one, each under load on real engines."""
    console = Console()
    rows = []
    for measured in _events(replicas):
        console.print(measured, highlight=False)
        rows.append(measured)
    report = BenchReport.here(f"python -m load_tests.routing.faults --replicas {replicas}", PACKAGES, targets(rows, replicas), rows)
    raise typer.Exit(report.publish(console, json_out))


def targets(rows: Sequence[Row], replicas: int) -> list[Target]:
    """With so few grammars, chance may give a newcomer twice its share of them."""
    by_event = {each["event"]: each for each in rows}
    killed, joined = by_event[KILLED], by_event[JOINED]
    back = [Target.at_most(f"a replica {event}: traffic is back after", by_event[event]["back_s"], BACK_S, "s") for event in EVENTS]
    unclean = float(sum(each["unclean"] for each in rows))
    return [
        *back,
        Target.at_most("a replica killed: grammars that move / that it held", ratio(killed["grammars_moved"], killed["held"]), 1, ""),
        Target.at_most("a replica joined: grammars that move / all", joined["grammars_moved"] / GRAMMARS, 2 / replicas, ""),
        Target.at_least("a replica joined: new replicas that answer", float(joined["replicas_answering"]), 1, ""),
        Target.at_most("requests neither answered nor refused with an error of the service's own", unclean, 0, ""),
    ]


def row(event: str, clients: int, calls: Sequence[Call], back: float | None, before: Page, after: Page) -> Row:
    """`after` has the replicas that it tells of; `grammars_moved`: how often one of them had to load a grammar since `before`."""
    added = [figures.since(before.get(replica, ReplicaFigures())) for replica, figures in after.items()]
    return {
        "event": event,
        "clients": clients,
        "requests": len(calls),
        "answered": sum(call.is_answered for call in calls),
        "unclean": sum(not call.is_clean for call in calls),
        "statuses": dict(Counter(f"{call.status} {call.code}".strip() for call in calls)),
        "back_s": None if back is None else round(back, 2),
        "grammars_moved": round(sum(one.grammars_loaded for one in added)),
        "replicas_answering": sum(one.answered > 0 for one in added),
    }


def _events(replicas: int) -> Iterator[Row]:
    model: dict[str, Any] = {"num_replicas": replicas, "cpu_kv_cache_gib": 0.25}
    bodies = traffic.each(GRAMMARS, MAX_TOKENS)
    with environment({}, ONE_THREAD), running_service({"model": model, "http": ALL_METRICS}) as url:
        asyncio.run(compile_all(url, traffic.schemas()[:GRAMMARS]))
        with calling(url, bodies, FEW) as calls:
            _round_s(calls)
        yield from _death_and_birth(url, bodies, replicas)
        yield _hang(url, bodies)


def _death_and_birth(url: str, bodies: Sequence[traffic.Body], replicas: int) -> Iterator[Row]:
    """What the newcomer loads has moved to it; what the others load has moved from the dead one, whose figures stand still."""
    before = settled_page(url)
    with calling(url, bodies, FEW) as calls:
        _round_s(calls)
        _victim().kill()
        after_death = _slowest_s(calls)
        _replaced(replicas)
        midway, joined_at = page_of(url), time.monotonic()
        after_birth = _slowest_s(calls)
    after = settled_page(url)
    old, new = ({replica: figures for replica, figures in after.items() if (replica in before) is known} for known in (True, False))
    held = sum(figures.grammars_resident for replica, figures in before.items() if midway.get(replica) == after.get(replica))
    yield {**row(KILLED, FEW, [call for call in calls if call.sent_at < joined_at], after_death, before, old), "held": held}
    yield row(JOINED, FEW, [call for call in calls if call.sent_at >= joined_at], after_birth, before, new)


def _hang(url: str, bodies: Sequence[traffic.Body]) -> Row:
    before = settled_page(url)
    with calling(url, bodies, MANY) as calls:
        _round_s(calls)
        with _suspended(_victim()):
            slowest = _slowest_s(calls)
    return row(HUNG, MANY, calls, slowest, before, settled_page(url))


def _slowest_s(calls: Sequence[Call]) -> float | None:
    """Of the next rounds; None: one does not end."""
    rounds = [_round_s(calls) for _ in range(ROUNDS)]
    ended = [seconds for seconds in rounds if seconds is not None]
    return max(ended) if len(ended) == ROUNDS else None


def _round_s(calls: Sequence[Call]) -> float | None:
    """Until all grammars have been answered that are asked for from now on; None: they are not."""
    since = time.monotonic()
    return _look_for(lambda: back_s(calls, GRAMMARS, since), GIVE_UP_S)


def _replaced(replicas: int) -> None:
    """Returns when one of so many has been missed, and another one runs. Raises TimeoutError."""
    for is_so in (lambda: _running() < replicas, lambda: _running() >= replicas):
        if not _look_for(is_so, JOIN_S):
            raise TimeoutError(f"a dead {MODEL} is not replaced within {JOIN_S:g} s")


def _look_for(look: Callable[[], T], seconds: float) -> T:
    """What is found, or what there is instead when the time is over."""
    give_up = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < give_up:
        time.sleep(LOOK_S)
    return found


@contextmanager
def _suspended(victim: psutil.Process) -> Iterator[None]:
    """With its engine."""
    processes = [victim, *victim.children(recursive=True)]
    try:
        for process in processes:
            process.suspend()
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def _running() -> int:
    states: Mapping[Any, int] = serve.status().applications[APPLICATION].deployments[MODEL].replica_states
    return states.get("RUNNING", 0)


def _victim() -> psutil.Process:
    """Some replica's process; raises LookupError where there is none."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if REPLICA in " ".join(process.cmdline()):
                return process
    raise LookupError(f"no process of {REPLICA}")


if __name__ == "__main__":
    typer.run(main)
