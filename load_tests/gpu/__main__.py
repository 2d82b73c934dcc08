"""`python -m load_tests.gpu --json load_tests/results/gpu/NAME.json`: the GPU path as far as torch and Triton show it, in 25 minutes or
less. The machine has a GPU, torch, Triton, numpy, typer, rich and psutil; it needs neither vLLM nor a network. With xgrammar is compared
where it is installed, or where `--xgrammar-kernel` names its file of that kernel.

Five parts, in this order: our mask kernel against xgrammar's and torch's; whole frames, which must not wait for the device; forwards of an
8B-shaped model with random weights, for whom a segment pays; the same as one CUDA graph, as graphs between attentions, and without; forced
tokens into a table of tokens on the device. Each has a process of its own. Each row is written as soon as it is measured, and what other
parts have left in the file stays: on a machine that allows shorter runs only, run them one after another, with `--parts` and `--minutes`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from deployments.reporting.report import BenchReport
from load_tests.errors import BenchFailed
from load_tests.gpu import apart, forwards, frames, kernels, staged_writes
from load_tests.gpu.apart import Measure
from load_tests.gpu.device import Device
from load_tests.gpu.figures import notes, targets
from load_tests.gpu.plan import FULL, SMALL, Clock, Plan
from load_tests.gpu.rows import Row

PACKAGES = ("torch", "triton", "xgrammar", "numpy")
MINUTES = 25
PARTS: dict[str, Measure] = {
    kernels.PART: kernels.measured,
    frames.PART: frames.measured,
    forwards.FORWARDS: forwards.forwards,
    forwards.GRAPHS: forwards.graphs,
    staged_writes.PART: staged_writes.measured,
}


def main(
    parts: Annotated[str, typer.Option(help="with commas between")] = ",".join(PARTS),
    minutes: Annotated[float, typer.Option(min=0, help="what has not begun by then is left out")] = MINUTES,
    xgrammar_kernel: Annotated[
        Path | None, typer.Option(help="xgrammar's kernels/apply_token_bitmask_inplace_triton.py, where xgrammar is not installed")
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="try the script, also without a GPU; its figures say nothing")] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure what can be measured of the GPU path without vLLM."""
    plan = replace(SMALL if small else FULL, xgrammar_kernel=xgrammar_kernel)
    device = Device.found(plan.repeats)
    if not device.is_gpu and not small:
        raise BenchFailed("there is no GPU here; --small tries the script without one")
    command = " ".join(
        [f"python -m load_tests.gpu --parts '{parts}' --minutes {minutes:g}"]
        + [f"--xgrammar-kernel {xgrammar_kernel}"] * bool(xgrammar_kernel)
        + ["--small"] * small
    )
    console, rows = Console(), _kept(json_out, parts.split(","))
    for row in _measured(parts.split(","), plan, Clock(minutes * 60)):
        console.print(json.dumps(row), highlight=False, soft_wrap=True, markup=False)
        rows.append(row)
        if json_out is not None:
            _report(command, device, rows).write(json_out)
    for note in notes(rows):
        console.print(note, highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(_report(command, device, rows).publish(console, json_out))


def _kept(path: Path | None, parts: Iterable[str]) -> list[Row]:
    """Of the file, what other parts have found."""
    if unknown := set(parts) - set(PARTS):
        raise BenchFailed(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return [row for row in BenchReport.read(path).rows if row["part"] not in parts] if path is not None and path.exists() else []


def _measured(parts: Iterable[str], plan: Plan, clock: Clock) -> Iterator[Row]:
    for part in parts:
        if clock.is_over:
            yield {"part": part, "skipped": apart.NO_TIME}
        else:
            yield from apart.measured(part, PARTS[part], plan, clock.left)


def _report(command: str, device: Device, rows: list[Row]) -> BenchReport:
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    return replace(report, machine={**report.machine, **_gpu(device)})


def _gpu(device: Device) -> dict[str, Any]:
    if not device.is_gpu:
        return {"gpu": f"none, but {platform.machine()}"}
    found = torch.cuda.get_device_properties(device.torch_device)
    return {"gpu": found.name, "gpu_memory_gib": round(found.total_memory / 2**30, 1), "cuda": torch.version.cuda or ""}


if __name__ == "__main__":
    typer.run(main)
