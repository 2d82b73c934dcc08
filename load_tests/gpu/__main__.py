"""`python -m load_tests.gpu --json load_tests/results/gpu/NAME.json`: the GPU path as far as torch and Triton show it, in 25 minutes or
less. The machine has a GPU, torch, Triton, numpy, typer, rich and psutil, and xgrammar if that is to be compared with; it needs neither
vLLM nor a network.

Five parts, in this order: our mask kernel against xgrammar's and torch's; whole frames, which must not wait for the device; forwards of an
8B-shaped model with random weights, for whom a segment pays; the same as one CUDA graph, as graphs between attentions, and without; forced
tokens into a table of tokens on the device. Each part is written as soon as it is measured, and what other parts have left in the file
stays: on a machine that allows shorter runs only, run them one after another, with `--parts`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from deployments.reporting.report import BenchReport, machine, versions
from load_tests.errors import BenchFailed
from load_tests.gpu import forwards, frames, kernels, staged_writes
from load_tests.gpu.device import Device
from load_tests.gpu.figures import targets
from load_tests.gpu.plan import FULL, SMALL, Clock, Plan, Row

PACKAGES = ("torch", "triton", "xgrammar", "numpy")
MINUTES = 25
Measure = Callable[[Plan, Device, Clock], Iterator[Row]]
PARTS: dict[str, Measure] = {
    kernels.PART: lambda plan, device, _: kernels.measured(plan, device),
    frames.PART: lambda plan, device, _: frames.measured(plan, device),
    forwards.FORWARDS: forwards.forwards,
    forwards.GRAPHS: forwards.graphs,
    staged_writes.PART: lambda plan, device, _: staged_writes.measured(plan, device),
}


def main(
    parts: Annotated[str, typer.Option(help="with commas between")] = ",".join(PARTS),
    minutes: Annotated[float, typer.Option(min=0, help="what has not begun by then is left out")] = MINUTES,
    small: Annotated[bool, typer.Option("--small", help="try the script, also without a GPU; its figures say nothing")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure what can be measured of the GPU path without vLLM."""
    plan = SMALL if small else FULL
    device = Device.found(plan.repeats)
    if not device.is_gpu and not small:
        raise BenchFailed("there is no GPU here; --small tries the script without one")
    console, rows = Console(), _kept(json_out, parts.split(","))
    clock = Clock(minutes * 60)
    for part in parts.split(","):
        rows += _shown(console, _run(part, plan, device, clock))
        report = _report(f"python -m load_tests.gpu --parts '{parts}' --minutes {minutes:g}{' --small' * small}", device, rows)
        if json_out is not None:
            report.write(json_out)
    raise typer.Exit(report.publish(console, json_out))


def _kept(path: Path | None, parts: Iterable[str]) -> list[Row]:
    """Of the file, what other parts have found."""
    if unknown := set(parts) - set(PARTS):
        raise BenchFailed(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return [row for row in BenchReport.read(path).rows if row["part"] not in parts] if path is not None and path.exists() else []


def _run(part: str, plan: Plan, device: Device, clock: Clock) -> Iterator[Row]:
    """What goes wrong in one part is its result: the others' time on the machine is not to be lost for it."""
    if clock.is_over:
        yield {"part": part, "skipped": "no time was left"}
        return
    try:
        yield from PARTS[part](plan, device, clock)
    except Exception as error:  # noqa: BLE001  # see above
        said = str(error).strip().splitlines() or [""]
        yield {"part": part, "failed": f"{type(error).__name__}: {said[0]}"}


def _shown(console: Console, rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        console.print(json.dumps(row), highlight=False, soft_wrap=True)
        yield row


def _report(command: str, device: Device, rows: list[Row]) -> BenchReport:
    return BenchReport(command, {**machine(), **_gpu(device)}, versions(PACKAGES), targets(rows), rows)


def _gpu(device: Device) -> dict[str, Any]:
    if not device.is_gpu:
        return {"gpu": f"none, but {platform.machine()}"}
    found = torch.cuda.get_device_properties(device.torch_device)
    return {"gpu": found.name, "gpu_memory_gib": round(found.total_memory / 2**30, 1), "cuda": torch.version.cuda or ""}


if __name__ == "__main__":
    typer.run(main)
