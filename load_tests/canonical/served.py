"""`python -m load_tests.canonical.served`: canonical answers at the HTTP port, beside plain ones under the same constraints.

Both are asked of one service, by turns, with greedy decoding; every grammar is compiled before anything is measured. Then canonical ones
are asked for, greedy and drawn, until a number of them have ended by themselves, and these are encoded anew: their tokens are to be those
of their texts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
ENDING = (EXTRACTION, CHARACTER)
"""Whose answers end by themselves, if the model is not too talkative."""
AT_ONCE = 16
MOST_ASKED = 4
"""Times as many requests as answers that are to end by themselves."""


@dataclass(slots=True)
class Anew:
    """`encoded`: whole answers that ended by themselves, of `wanted` ones; of these so many are `canonical`."""

    wanted: int
    asked: int = 0
    encoded: int = 0
    canonical: int = 0
    fallbacks: int = 0
    failed: int = 0


def main(
    clients: Annotated[int, typer.Option(min=1, help="at a time, streaming")] = 32,
    turns: Annotated[int, typer.Option(min=1, help="of plain and canonical")] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="that are measured of each cell")] = 5.0,
    answers: Annotated[int, typer.Option(min=1, help="that end by themselves, and are encoded anew")] = 500,
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
    yield Target.at_least("answers that ended by themselves and were encoded anew", float(anew["encoded"]), anew["wanted"], "")
    yield Target.at_most("answers whose tokens are not those of their texts", float(anew["encoded"] - anew["canonical"]), 0, "")
    yield Target.at_most("answers that fell back on the grammar's masks", float(anew["fallbacks"]), 0, "")
    yield Target.at_most("requests that were not answered", float(sum(row["failed"] for row in rows)), 0, "")


def _both_kinds(workload: Workload) -> Workload:
    """Our own bodies, and the same ones with the option."""
    plain = workload.bodies[OURS]
    kept = [{**body, "structured_outputs": {**body["structured_outputs"], "canonical": True}} for body in plain]
    return replace(workload, bodies={PLAIN: plain, CANONICAL: kept})


async def _encoded_anew(url: str, workloads: Sequence[Workload], count: int) -> Row:
    """An Anew: greedy and drawn in turn, until `count` have ended by themselves, or MOST_ASKED times as many were asked for."""
    ending = [workload.bodies[CANONICAL] for workload in workloads if workload.name in ENDING]
    asked = [body for bodies in zip(*ending, strict=True) for body in bodies]
    bodies = islice(cycle(product(asked, TEMPERATURES)), MOST_ASKED * count)
    tokenizer, found = GrammarTokenizer.load(EMBEDDED_WEIGHTS), Anew(count)
    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as client:

        async def ask_on() -> None:
            for body, temperature in bodies:
                whole = {**body, "temperature": temperature, "return_token_ids": True}
                add(await client.post("/v1/chat/completions", json=whole), found, tokenizer)
                if found.encoded >= count:
                    return

        await asyncio.gather(*(ask_on() for _ in range(AT_ONCE)))
    return asdict(found)


def add(reply: httpx.Response, found: Anew, tokenizer: GrammarTokenizer) -> None:
    """One reply counts."""
    found.asked += 1
    if reply.status_code != OK:
        found.failed += 1
        return
    body = json.loads(reply.content)
    found.fallbacks += body["usage"]["completion_tokens_details"]["not_canonical"]
    for choice in body["choices"]:
        if choice["finish_reason"] == "stop":
            found.encoded += 1
            found.canonical += _is_canonical(choice, tokenizer)


def _is_canonical(choice: Mapping[str, Any], tokenizer: GrammarTokenizer) -> bool:
    tokens = [token for token in choice["token_ids"] if token not in tokenizer.stop_token_ids]
    return tokens == tokenizer.encode(choice["message"]["content"])


if __name__ == "__main__":
    typer.run(main)
