"""The page of what was measured on GPUs, one chapter for each machine's result; it says so where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployments.reporting.report import BenchReport
from load_tests.gpu.figures import (
    forward_cells,
    frame_cells,
    graph_cells,
    kernel_cells,
    notes,
    overlap_cells,
    segments,
    write_cells,
)
from load_tests.gpu.rows import Row
from load_tests.overlap.figures import between_forwards
from load_tests.reporting.markdown import machine, ran, table, target_table

NAME = "gpu.md"
OVERLAP = "overlap"
COMMAND = "python -m load_tests.gpu --json load_tests/results/gpu/NAME.json"
_HEAD = f"""# On GPUs

What torch and Triton show of the GPU path on a machine that has them and a GPU, and no vLLM: `{COMMAND}`.
[What has run on a GPU, and what has not](../guide/gpu.md)."""


def page(reports: Mapping[str, BenchReport], overlap: BenchReport | None = None) -> str:
    """`reports` by the name of their file. `overlap`: what an engine core takes between two forwards."""
    chapters = [line for name, report in reports.items() for line in _chapter(name, report, overlap)]
    return "\n".join([_HEAD, "", *(chapters or ["**Not measured**: the command has not been run on a GPU.", ""])])


def _chapter(name: str, report: BenchReport, overlap: BenchReport | None) -> list[str]:
    return [
        *[f"## {report.machine.get('gpu', name)}", "", ran(report), "", *target_table(report), ""],
        *_forwards(report.rows),
        *(_overlap(report.rows, overlap) if overlap else []),
        *_others(report.rows),
        *[f"- {note}" for note in notes(report.rows)],
        "",
    ]


def _forwards(rows: Sequence[Row]) -> list[str]:
    return [
        *_part(
            "A forward of m tokens for each of b requests: milliseconds, and how many times longer m forwards take",
            ["requests", "pays from m =", *(f"m = {m}" for m in segments(rows))],
            forward_cells(rows),
        ),
        *_part("Milliseconds of a forward by its graphs", ["requests", "segment", "full", "piecewise", "none"], graph_cells(rows)),
    ]


def _overlap(rows: Sequence[Row], overlap: BenchReport) -> list[str]:
    title = f"From how many free tokens between two segments [overlapping steps]({OVERLAP}.md) win, with C of {machine(overlap)}"
    lines = overlap_cells(rows, between_forwards(overlap.rows))
    return _part(title, ["requests", "G, ms", "C, ms", "G / C", "win from r ="], lines)


def _others(rows: Sequence[Row]) -> list[str]:
    frames = ["vocabulary", "rows", "bytes", "wrong logits", "waits", "host, µs", "device, µs"]
    return [
        *_part("Microseconds of masking logits", ["vocabulary", "rows", "type", "masks", "ours", "xgrammar", "torch"], kernel_cells(rows)),
        *_part("A whole frame on its way to the logits", frames, frame_cells(rows)),
        *_part("Forced tokens into a table on the device", ["requests", "segment", "wrong tokens", "waits", "host, µs"], write_cells(rows)),
    ]


def _part(title: str, heads: list[str], lines: list[list[str]]) -> list[str]:
    return [f"### {title}", "", *table(heads, lines), ""] if lines else []
