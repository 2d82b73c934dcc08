"""`python -m load_tests.faults`: what clients notice of each process that dies or hangs on a cluster of two nodes.

Clients ask at the ingress of the node that stays, and at the one of the node where processes are struck. A connection that ends because the
process at its other end is the one that was killed is counted apart; any other request that gets neither a whole answer nor an error of the
service's own is lost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.local.redis_server import RedisServer
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.errors import BenchFailed
from load_tests.faults.clients import FAILED, LOST, PATIENCE_S, REFUSED, STRUCK, WHOLE, Clients, fitting_letters
from load_tests.faults.deployed import Deployed
from load_tests.faults.single import SINGLE, struck_alone
from load_tests.faults.stages import Stage, stages
from load_tests.faults.strikes import STRIKES, Strike
from load_tests.faults.waiting import wait_for
from load_tests.reporting.running_service import PACKAGES

COMMAND = "python -m load_tests.faults"
REPLACED_S = {each.name: each.replaced_s for each in STRIKES}
NAMES = (*(each.name for each in STRIKES), SINGLE)
NEAR, FAR = (2, 1), (1, 1)
"""Streaming and plain clients of the node that stays, and of the other one."""
BACK_S, ALONE_BACK_S, GIVE_UP_S, SETTLE_S = 30.0, 15.0, 120.0, 300.0


def main(
    only: Annotated[str, typer.Option(help="the strikes whose name has one of these in it, with commas between")] = "",
    json_out: Annotated[
        Path | None,
        typer.Option(
            "--json", help="write the report here; it keeps its rows of all other strikes, if they are of this machine and these versions"
        ),
    ] = None,
) -> None:
    """Strike each kind of process under load, and count what becomes of the requests."""
    console, rows = Console(), list[Row]()
    earlier = kept(json_out, only)
    chosen = [stage.of(only) for stage in stages()]
    for stage in chosen:
        rows += [skipped(strike, stage.why_not) for strike in stage.strikes] if stage.why_not else _staged(stage, console)
    if any(text in SINGLE for text in only.split(",")):
        rows.append(_alone())
    rows = merged(earlier, rows)
    report = BenchReport.here(COMMAND, PACKAGES, targets(rows, len(NAMES)), rows)
    raise typer.Exit(report.publish(console, json_out))


def kept(path: Path | None, only: str) -> Sequence[Row]:
    """What an earlier run wrote there, if that was on this machine with these versions: a report says of all its rows what they ran on.

    Raises:
        BenchFailed: it was not, and only some strikes are run, beside which the others would be missing.
    """
    if path is None or not path.exists():
        return []
    earlier, here = BenchReport.read(path), BenchReport.here(COMMAND, PACKAGES, [], [])
    if (earlier.machine, earlier.versions) == (here.machine, here.versions):
        return earlier.rows
    if only:
        raise BenchFailed(f"{path} is of another machine, or of other versions: run all strikes, or write to another file")
    return []


def _staged(stage: Stage, console: Console) -> list[Row]:
    """A row for each strike, until the cluster is not whole again: what would be struck next is not there."""
    rows = list[Row]()
    if stage.strikes:
        with stage.begun() as (deployed, redis):
            try:
                deployed.wait_until_settled(SETTLE_S)
                letters = fitting_letters(deployed, *(sum(clients) for clients in zip(NEAR, FAR, strict=True)))
                for strike in stage.strikes:
                    rows.append(_struck(strike, deployed, redis, letters))
                    console.print(rows[-1], highlight=False)
            except BenchFailed as error:
                console.print(error, style="red")
    return rows


def merged(earlier: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Of each strike the last row, in the order of the strikes; one that was skipped keeps what an earlier run of it has found."""
    by_name = {row["strike"]: row for row in (*earlier, *rows) if "lost" in row}
    by_name = {**{row["strike"]: row for row in rows}, **by_name}
    return [by_name[name] for name in NAMES if name in by_name]


def targets(rows: Sequence[Row], strikes: int) -> list[Target]:
    """Of so many `strikes`; those that ended in order have a row, and those that cannot be had here one that says why."""
    struck = [row for row in rows if "lost" in row]
    lost = Target.at_most("requests lost", float(sum(row["lost"] for row in struck)), 0, "")
    possible = strikes - (len(rows) - len(struck))
    ended = Target.at_least("strikes after which the cluster was whole again", float(len(struck)), possible, "")
    return [
        lost,
        ended,
        *(
            Target.at_most(
                f"{row['strike']}: all clients are answered again after",
                row["back_s"],
                ALONE_BACK_S if row["strike"] == SINGLE else BACK_S + REPLACED_S[row["strike"]],
                "s",
            )
            for row in struck
        ),
    ]


def skipped(strike: Strike, why: str) -> Row:
    """Of a strike that cannot be had on this machine."""
    return {"strike": strike.name, "skipped": why}


def row(name: str, ends: Mapping[str, int], back_s: float | None, settled_s: float, letters: int) -> Row:
    """What became of the requests, when all clients were answered again, when the cluster was whole again, and how long answers were."""
    return {
        "strike": name,
        "letters": letters,
        "accepted": sum(ends.values()) - ends.get(REFUSED, 0),
        "answered": ends.get(WHOLE, 0),
        "failed": ends.get(FAILED, 0),
        "connections_struck": ends.get(STRUCK, 0),
        "lost": sum(ends.get(how, 0) for how in LOST),
        "refused_connections": ends.get(REFUSED, 0),
        "back_s": None if back_s is None else round(back_s, 1),
        "settled_s": round(settled_s, 1),
    }


def _alone() -> Row:
    found = struck_alone(GIVE_UP_S)
    return {**row(SINGLE, found.ends, found.back_s, found.settled_s, found.letters), "restart_s": found.restart_s}


def _struck(strike: Strike, deployed: Deployed, redis: RedisServer, letters: int) -> Row:
    """Returns when all is there again."""
    deployed.wait_until_settled(SETTLE_S)
    near, far = (
        Clients(deployed, *numbers, letters=letters, door=deployed.door(node), patience_s=PATIENCE_S + strike.replaced_s)
        for numbers, node in ((NEAR, deployed.lasting), (FAR, deployed.other))
    )
    with near, far:
        begun = time.monotonic()
        strike.act(deployed, redis)
        with suppress(BenchFailed):  # then there is no time after which all were answered
            wait_for(lambda: None not in (near.back_s(begun), far.back_s(begun)), GIVE_UP_S, "answers to all clients")
        deployed.wait_until_settled(SETTLE_S)
        settled_s = time.monotonic() - begun
    for each in (*near.ended, *far.ended):
        if each.how in LOST:
            Console(stderr=True).print(each, highlight=False)
    backs = near.back_s(begun), far.back_s(begun)
    back_s = None if None in backs else max(each for each in backs if each is not None)
    return row(strike.name, Counter(near.ends) + Counter(far.ends), back_s, settled_s, letters)


if __name__ == "__main__":
    typer.run(main)
