"""`python -m load_tests.routing_faults`: what clients notice when a replica is killed, when one joins, and when one hangs.

A service with its Redis, as `maskcast serve` starts it, is asked over HTTP for a handful of grammars, all the time. A replica's process is
killed; the one that replaces it joins; another one, with its engine, is suspended and goes on. Traffic is back when every grammar has been
answered to somebody who asked for it after the event.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from ray import serve
from rich.console import Console

from deployments.app import APPLICATION
from deployments.environment import environment
from deployments.health import MODEL
from grammar_service.bench.report import BenchReport, Row, Target
from load_tests.peers.routing import ONE_THREAD, PACKAGES
from load_tests.routing import traffic
from load_tests.routing.callers import Call, back_s, calling
from load_tests.routing.clients import compile_all
from load_tests.routing.page import Page, ReplicaFigures, settled_page
from load_tests.running_service import running_service

REPLICA = f"ServeReplica:{APPLICATION}:{MODEL}"
GRAMMARS, MAX_TOKENS = 24, 24
FEW, MANY = 6, 40
"""Clients: so few that no replica is over its share, and so many that all are busy."""
BEFORE_S, AFTER_S = 5.0, 10.0
"""Of calls before each event, and after traffic is back."""
BACK_S, GIVE_UP_S, LOOK_S = 10.0, 60.0, 0.1
JOIN_S = 240.0
KILLED, JOINED, HUNG = EVENTS = ("killed", "joined", "hung")


def main(
    replicas: Annotated[int, typer.Option(min=2, help="model replicas")] = 4,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Kill a replica, let one join, and suspend one, each under load on real engines."""
    console = Console()
    rows = []
    for row in _events(replicas):
        console.print(row, highlight=False)
        rows.append(row)
    report = BenchReport.here(f"python -m load_tests.routing_faults --replicas {replicas}", PACKAGES, targets(rows, replicas), rows)
    console.print(report.table())
    if json_out:
        report.write(json_out)
    raise typer.Exit(0 if all(target.holds for target in report.targets) else 1)


def targets(rows: Sequence[Row], replicas: int) -> list[Target]:
    """With so few grammars, chance may give a replica twice its share of them."""
    by_event = {row["event"]: row for row in rows}
    share = 2 / replicas
    back = [Target.at_most(f"a replica {event}: traffic is back after", by_event[event]["back_s"], BACK_S, "s") for event in EVENTS]
    moved = [
        Target.at_most(f"a replica {event}: grammars that move, of all", by_event[event]["grammars_moved"] / GRAMMARS, share, "")
        for event in (KILLED, JOINED)
    ]
    unclean = float(sum(row["unclean"] for row in rows))
    return [
        *back,
        *moved,
        Target.at_least("a replica joined: new replicas that answer", float(by_event[JOINED]["replicas_answering"]), 1, ""),
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
    with environment({}, ONE_THREAD), running_service({"model": model}) as url:
        asyncio.run(compile_all(url, traffic.schemas()[:GRAMMARS]))
        with calling(url, bodies, FEW) as calls:
            _await_back(calls, time.monotonic())
        yield from _death_and_birth(url, bodies, replicas)
        yield _hang(url, bodies)


def _death_and_birth(url: str, bodies: Sequence[traffic.Body], replicas: int) -> Iterator[Row]:
    """What the newcomer loads has moved to it; what the others load has moved from the dead one."""
    before = settled_page(url)
    with calling(url, bodies, FEW) as calls:
        time.sleep(BEFORE_S)
        _victim().kill()
        after_death = _await_back(calls, time.monotonic())
        _await(lambda: _running() < replicas, "a replica to be missed")
        _await(lambda: _running() >= replicas, "another one to run")
        joined_at = time.monotonic()
        after_birth = _await_back(calls, joined_at)
        time.sleep(AFTER_S)
    after = settled_page(url)
    old, new = ({replica: figures for replica, figures in after.items() if (replica in before) is known} for known in (True, False))
    yield row(KILLED, FEW, [call for call in calls if call.sent_at < joined_at], after_death, before, old)
    yield row(JOINED, FEW, [call for call in calls if call.sent_at >= joined_at], after_birth, before, new)


def _hang(url: str, bodies: Sequence[traffic.Body]) -> Row:
    before = settled_page(url)
    with calling(url, bodies, MANY) as calls:
        time.sleep(BEFORE_S)
        with _suspended(_victim()):
            back = _await_back(calls, time.monotonic())
            time.sleep(AFTER_S)
    return row(HUNG, MANY, calls, back, before, settled_page(url))


def _await_back(calls: Sequence[Call], since: float) -> float | None:
    while time.monotonic() < since + GIVE_UP_S:
        if (back := back_s(calls, GRAMMARS, since)) is not None:
            return back
        time.sleep(LOOK_S)
    return None


def _await(is_so: Callable[[], bool], what: str) -> None:
    """Raises TimeoutError."""
    give_up = time.monotonic() + JOIN_S
    while not is_so():
        if time.monotonic() > give_up:
            raise TimeoutError(f"waited {JOIN_S:g} s for {what}")
        time.sleep(LOOK_S)


@contextmanager
def _suspended(victim: psutil.Process) -> Iterator[None]:
    """With its engine."""
    processes = [victim, *victim.children(recursive=True)]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
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
