"""`python -m load_tests.tenants`: what tenants notice of each other at the HTTP port of one service.

Light clients of one key alone and beside each flood of another, by turns; three floods of keys with different weights; connections that
are opened and not used; floods by two ingresses of another service. Clients are processes of their own, those of floods less urgent than
all others.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from threading import Timer
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.config import parse_settings
from deployments.reporting.report import BenchReport, Row
from load_tests.front_door.clients.connection import request
from load_tests.front_door.clients.process import client_process
from load_tests.front_door.figures import OURS
from load_tests.front_door.workloads import make_workload
from load_tests.reporting.running_service import PACKAGES, memory_mib
from load_tests.tenants.bodies import Flood, chat, floods
from load_tests.tenants.figures import AFTER, ALONE, BESIDE, targets
from load_tests.tenants.flooding import Struck, flooding
from load_tests.tenants.ingresses import ingress_rows
from load_tests.tenants.light import Light
from load_tests.tenants.many_connections import connections, most_connections
from load_tests.tenants.service import HOST, SEATS, Tenants, service
from load_tests.tenants.turns import Turns
from load_tests.tenants.weighted import WEIGHTS, share_rows
from router.turns.shares import seats_for_one

TENANTS: Tenants = {"light": {}, "flood": {}, **{name: {"weight": weight} for name, weight in WEIGHTS.items()}}
INGRESSES = "ingresses"
IDLE, HALF_OPEN, LEAVING = 10_000, 500, 1_000
DISCONNECTS = "disconnects at once"
SETTLE_S = 30.0


def main(
    seconds: Annotated[float, typer.Option(min=0.5, help="of light clients alone, and beside each flood, in each turn")] = 8.0,
    turns: Annotated[int, typer.Option(min=1, help="of both, for each flood")] = 3,
    weights_s: Annotated[float, typer.Option(min=1, help="of the floods with weights")] = 120.0,
    only: Annotated[
        str, typer.Option(help="floods | weights | connections | ingresses, with commas between")
    ] = "floods,weights,connections,ingresses",
    flood: Annotated[list[str] | None, typer.Option(help="of all floods only this one; may be given several times")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure what tenants notice of each other."""
    console = Console()
    rows: list[Row] = []
    parts = only.split(",")
    courses = (
        _one_service([part for part in parts if part != INGRESSES], seconds, turns, weights_s, flood or ()),
        *([ingress_rows(weights_s)] if INGRESSES in parts else []),
    )
    for row in chain.from_iterable(courses):
        rows.append(row)
        console.print(" ".join(f"{what}={value}" for what, value in row.items()), highlight=False)
    command = f"python -m load_tests.tenants --seconds {seconds:g} --turns {turns} --weights-s {weights_s:g} --only {only}"
    command += "".join(f" --flood {shlex.quote(name)}" for name in flood or ())
    raise typer.Exit(BenchReport.here(command, PACKAGES, targets(rows), rows).publish(console, json_out))


def _one_service(names: Sequence[str], seconds: float, turns: int, weights_s: float, only: Sequence[str]) -> Iterator[Row]:
    """Whose door is in its one replica; `only`: the floods that are wanted, none: all."""
    if not names:
        return
    with service(TENANTS) as (port, keys), ExitStack() as held:
        clients = [held.enter_context(client_process()) for _ in WEIGHTS]
        light = Light(clients[0], HOST, port, keys["light"], _light_bodies())
        light.ask(4.0)  # every grammar is compiled before anything is measured
        parts: Mapping[str, Callable[[], Iterable[Row]]] = {
            "floods": lambda: _floods(light, keys["flood"], seconds, turns, only),
            "weights": lambda: share_rows("weights", clients, port, keys, weights_s),
            "connections": lambda: _connections(light, keys["flood"], seconds, turns),
        }
        for name in names:
            yield from parts[name]()


def _light_bodies() -> list[bytes]:
    return make_workload("extraction", parse_settings({}).model.served_name).encoded(OURS, stream=True)


def _floods(light: Light, key: str, seconds: float, turns: int, names: Sequence[str]) -> Iterator[Row]:
    before = memory_mib()
    for flood in floods(SEATS, seats_for_one(SEATS)):
        if names and flood.name not in names:
            continue
        taken, struck = Turns(flood.name, light, seconds), list[Struck]()
        for _ in range(turns):
            taken.take(ALONE)
            with flooding(flood, light.host, light.port, key) as found:
                taken.take(BESIDE)
            struck += found.struck
        yield taken.row(ALONE)
        yield {**taken.row(BESIDE), **_struck(flood, struck)}
    yield _memory_row("all floods", before)


def _struck(flood: Flood, struck: Sequence[Struck]) -> dict[str, Any]:
    statuses = sorted({one.status for one in struck})
    slowest = max((one.seconds for one in struck), default=None)
    told = {"flood_answers": len(struck), "flood_statuses": " ".join(map(str, statuses))}
    return {**told, "slowest_s": None if slowest is None else round(slowest, 3)} if flood.hostile else told


def _connections(light: Light, key: str, seconds: float, turns: int) -> Iterator[Row]:
    before = memory_mib()
    half = request(light.host, light.port, chat(2000, 8), key)
    kinds = {
        "idle connections": (IDLE, b""),
        "half-open bodies": (HALF_OPEN, half[: len(half) // 2]),
        DISCONNECTS: (LEAVING, request(light.host, light.port, chat(20, 400), key)),
    }
    for name, (wanted, content) in kinds.items():
        taken, numbers = Turns(name, light, seconds), list[int]()
        for _ in range(turns):
            taken.take(ALONE)
            with connections(light.host, light.port, most_connections(wanted), content) as opened:
                numbers.append(opened.number)
                taken.take(BESIDE, Timer(seconds / 2, opened.close).start if name == DISCONNECTS else lambda: None)
            taken.take(AFTER)
        yield taken.row(ALONE)
        yield {**taken.row(BESIDE), "connections": min(numbers), "wanted": wanted}
        yield taken.row(AFTER)
    yield _memory_row("all connections", before)


def _memory_row(what: str, before: float) -> Row:
    return {"scenario": "memory", "phase": AFTER, "of": what, "before_mib": round(before), "after_mib": round(_settled_memory_mib(before))}


def _settled_memory_mib(before: float) -> float:
    """When it is no more than it was, or after some time."""
    deadline = time.monotonic() + SETTLE_S
    while (now := memory_mib()) > before and time.monotonic() < deadline:
        time.sleep(1)
    return now


if __name__ == "__main__":
    typer.run(main)
