"""`python -m load_tests.faults`: what clients notice of each process that dies on a cluster of two nodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console

from deployments.config import Settings
from deployments.local.environment import defaults
from deployments.local.redis_server import RedisServer
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.faults.clients import CUT, FAILED, HUNG, UNANSWERED, WHOLE, Clients
from load_tests.faults.deployed import Deployed
from load_tests.faults.ray_nodes import RayNodes
from load_tests.faults.strikes import STRIKES, Strike
from load_tests.faults.waiting import wait_for
from load_tests.reporting.running_service import ONE_THREAD, PACKAGES

OVERLAY = Path(__file__).parents[2] / "k8s" / "overlays" / "cpu-dev" / "serve.yaml"
LABELS, CPUS = {"maskcast-role": "front"}, 2.0
"""Of its pods."""
STREAMING, PLAIN, LETTERS = 3, 2, 300
BACK_S, GIVE_UP_S, SETTLE_S = 30.0, 120.0, 240.0


def main(
    only: Annotated[str | None, typer.Option(help="the strikes whose name has this in it")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Strike each kind of process under load, and count what becomes of the requests."""
    console = Console()
    chosen = [each for each in STRIKES if only is None or only in each.name]
    pods = {**defaults(Settings(), Path.home()), **ONE_THREAD}
    with RedisServer() as state, RayNodes(pods, state) as nodes, RedisServer(parent=nodes.folder) as redis:
        deployed = Deployed(nodes, redis, yaml.safe_load(OVERLAY.read_text(encoding="utf-8")), CPUS, LABELS)
        deployed.start()
        rows = []
        for strike in chosen:
            rows.append(_struck(strike, deployed, redis))
            console.print(rows[-1], highlight=False)
    report = BenchReport.here("python -m load_tests.faults", PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(console, json_out))


def targets(rows: list[Row]) -> list[Target]:
    lost = Target.at_most("requests lost", float(sum(row["lost"] for row in rows)), 0, "")
    return [lost, *(Target.at_most(f"{row['strike']}: all are answered again after", row["back_s"], BACK_S, "s") for row in rows)]


def row(strike: Strike, ends: Mapping[str, int], back_s: float | None, settled_s: float) -> Row:
    """What became of the requests. One whose connection ended with what was struck had to end; any other one without an answer or an error
    of the service's own is lost."""
    broken = ends.get(CUT, 0) + ends.get(UNANSWERED, 0)
    struck = min(broken, STREAMING + PLAIN) if strike.ends_connections else 0
    return {
        "strike": strike.name,
        "accepted": sum(ends.values()),
        "answered": ends.get(WHOLE, 0),
        "failed": ends.get(FAILED, 0),
        "connections_struck": struck,
        "lost": broken - struck + ends.get(HUNG, 0),
        "back_s": None if back_s is None else round(back_s, 1),
        "settled_s": round(settled_s, 1),
    }


def _struck(strike: Strike, deployed: Deployed, redis: RedisServer) -> Row:
    """Returns when all is there again."""
    deployed.wait_until_settled(SETTLE_S)
    with Clients(deployed, STREAMING, PLAIN, LETTERS) as clients:
        begun = time.monotonic()
        strike.act(deployed, redis)
        wait_for(lambda: clients.back_s(begun) is not None, GIVE_UP_S, "answers to all clients")
        deployed.wait_until_settled(SETTLE_S)
        settled_s = time.monotonic() - begun
    return row(strike, clients.ends, clients.back_s(begun), settled_s)


if __name__ == "__main__":
    typer.run(main)
