"""`python -m load_tests.canonical.served`: canonical answers at the HTTP port, beside plain ones under the same constraints.

Both are asked of one service, by turns, with greedy decoding; every grammar is compiled before anything is measured. Then a number of
canonical answers, greedy and drawn, are encoded anew: their tokens are to be those of their texts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice, product
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from transformers import AutoTokenizer

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.commands.progress import CaseProgress
from deployments.config import parse_settings
from deployments.reporting.quantiles import median, ratio
from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.front_door.clients.process import client_process
from load_tests.front_door.figures import OK, OURS, STREAM
from load_tests.front_door.servers import HOST, running
from load_tests.front_door.turns import measured_cell, warm_up
from load_tests.front_door.workloads import Workload, make_workload
from load_tests.jump_forward.figures import CHARACTER, EXTRACTION, FREE
from load_tests.reporting.running_service import PACKAGES

PLAIN, CANONICAL = KINDS = ("plain", "canonical")
WORKLOADS = (FREE, EXTRACTION, CHARACTER)
TEMPERATURES = (0.0, 1.0)
AT_ONCE = 16


def main(
    clients: Annotated[int, typer.Option(min=1, help="at a time, streaming")] = 32,
    turns: Annotated[int, typer.Option(min=1, help="of plain and canonical")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="that are measured of each cell")] = 5.0,
    answers: Annotated[int, typer.Option(min=1, help="that are encoded anew")] = 500,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare requests a second of canonical and plain structured answers, and see whether the former are canonical."""
    tokenizer = AutoTokenizer.from_pretrained(str(EMBEDDED_WEIGHTS))
    workloads = [_both_kinds(make_workload(name, parse_settings({}).model.served_name, tokenizer)) for name in WORKLOADS]
    rows: list[Row] = []
    with client_process() as client, CaseProgress(Console(stderr=True)) as progress, running(OURS, {}) as server:
        for kind in KINDS:
            warm_up(workloads, kind, server, client)
        for turn, workload in product(range(turns), workloads):
            for kind in KINDS if turn % 2 == 0 else KINDS[::-1]:
                rows.append(measured_cell(server, client, turn, kind, workload, clients, STREAM, seconds).row())
                progress.say(str(rows[-1]))
                progress.show("cells", len(rows), turns * len(KINDS) * len(workloads))
        rows.append(asyncio.run(_encoded_anew(f"http://{HOST}:{server.port}", workloads, answers)))
    command = f"python -m load_tests.canonical.served --clients {clients} --turns {turns} --seconds {seconds:g} --answers {answers}"
    report = BenchReport.here(command, PACKAGES, list(targets(rows)), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def targets(rows: Sequence[Row]) -> Iterator[Target]:
    """Ratios are medians over turns of those within a turn."""
    for workload in WORKLOADS:
        per_turn: dict[int, dict[str, float]] = {}
        for row in rows:
            if row.get("workload") == workload:
                per_turn.setdefault(row["turn"], {})[row["side"]] = row["requests_per_s"]
        found = median(one for turn in per_turn.values() if (one := ratio(turn.get(CANONICAL), turn.get(PLAIN))) is not None)
        yield Target.at_least(f"{workload}: requests a second, canonical / plain", found, 0.95, "×")
    (anew,) = [row for row in rows if "encoded" in row]
    yield Target.at_most("answers whose tokens are not those of their texts", float(anew["encoded"] - anew["canonical"]), 0, "")
    yield Target.at_most("answers that fell back on the grammar's masks", float(anew["fallbacks"]), 0, "")
    yield Target.at_most("requests that were not answered", float(sum(row["failed"] for row in rows)), 0, "")


def _both_kinds(workload: Workload) -> Workload:
    """Our own bodies, and the same ones with the option."""
    plain = workload.bodies[OURS]
    kept = [{**body, "structured_outputs": {**body["structured_outputs"], "canonical": True}} for body in plain]
    return replace(workload, bodies={PLAIN: plain, CANONICAL: kept})


async def _encoded_anew(url: str, workloads: Sequence[Workload], count: int) -> Row:
    """`encoded`: whole answers that ended by themselves, greedy and drawn in turn; of these so many are `canonical`."""
    asked = [body for bodies in zip(*(workload.bodies[CANONICAL] for workload in workloads), strict=True) for body in bodies]
    bodies = islice(cycle(product(asked, TEMPERATURES)), count)
    tokenizer, room = GrammarTokenizer.load(EMBEDDED_WEIGHTS), asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as client:

        async def one(body: Mapping[str, Any], temperature: float) -> httpx.Response:
            async with room:
                return await client.post("/v1/chat/completions", json={**body, "temperature": temperature, "return_token_ids": True})

        replies = await asyncio.gather(*(one(body, temperature) for body, temperature in bodies))
    answered = [json.loads(reply.content) for reply in replies if reply.status_code == OK]
    whole = [choice for body in answered for choice in body["choices"] if choice["finish_reason"] == "stop"]
    return {
        "encoded": len(whole),
        "canonical": sum(_is_canonical(choice, tokenizer) for choice in whole),
        "fallbacks": sum(body["usage"]["completion_tokens_details"]["not_canonical"] for body in answered),
        "failed": len(replies) - len(answered),
    }


def _is_canonical(choice: Mapping[str, Any], tokenizer: GrammarTokenizer) -> bool:
    tokens = [token for token in choice["token_ids"] if token not in tokenizer.stop_token_ids]
    return tokens == tokenizer.encode(choice["message"]["content"])


if __name__ == "__main__":
    typer.run(main)
