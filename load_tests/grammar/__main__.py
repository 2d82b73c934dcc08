"""`python -m load_tests.grammar FOLDER`: the service against bare xgrammar and bare llguidance, with a Redis of its own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.commands.progress import CaseProgress
from deployments.commands.tokenizers import TEKKEN, tokenizer_path
from deployments.local.redis_server import RedisServer
from load_tests.corpus.cases import read_cases
from load_tests.grammar.messages import RedisAddress
from load_tests.grammar.ray_overhead import ray_overhead
from load_tests.grammar.runner import GrammarBench, Plan, report
from load_tests.grammar.summary import Summary

REDIS_MIB = 4096


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="a folder of grammars")],
    tokenizer: Annotated[str, typer.Option(help="a model's folder, a name on the Hugging Face hub, 'embedded' or 'tekken'")] = TEKKEN,
    rounds: Annotated[int, typer.Option(min=1, help="turns that every way of doing a thing takes")] = 3,
    also: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="more grammars, or the JSON Schema suite, for cold first masks only")
    ] = None,
    ray: Annotated[bool, typer.Option("--ray", help="also measure the pool through Ray Serve, which is started and stopped")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure the service against bare xgrammar and bare llguidance over a folder of grammars, in one run."""
    console, path = Console(), tokenizer_path(tokenizer)
    cases = read_cases(folder)
    more = [replace(case, name=f"{also.name}/{case.name}") for case in read_cases(also)] if also else []
    with CaseProgress(Console(stderr=True)) as progress:
        with _redis(progress) as redis:
            figures = GrammarBench(Plan(path, cases, more, redis, rounds), progress.show).run()
        found = report(" ".join(["python -m load_tests.grammar", *sys.argv[1:]]), figures)
        if ray:
            target, row = ray_overhead(cases, path, progress)
            found = replace(found, targets=[*found.targets, target], rows=[*found.rows, row])
    for table in (*Summary(figures).tables(), found.table()):
        console.print(table)
    if json_out:
        found.write(json_out)


@contextmanager
def _redis(progress: CaseProgress) -> Iterator[RedisAddress | None]:
    if shutil.which("redis-server") is None:
        progress.say("redis-server was not found: nothing is shared, and how soon shared grammars are ready is not measured")
        yield None
        return
    with RedisServer(max_memory_mib=REDIS_MIB) as server:
        yield RedisAddress(server.url, server.password.get_secret_value(), "bench")


if __name__ == "__main__":
    typer.run(main)
