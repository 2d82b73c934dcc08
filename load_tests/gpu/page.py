"""The page of what was measured on GPUs, one chapter for each machine's result; it says so where there is none."""

from __future__ import annotations

from collections.abc import Mapping

from deployments.reporting.report import BenchReport
from load_tests.gpu.figures import forward_cells, graph_cells, kernel_cells, notes, segments
from load_tests.reporting.markdown import ran, table, target_table

NAME = "gpu.md"
COMMAND = "python -m load_tests.gpu --json load_tests/results/gpu/NAME.json"
_HEAD = f"""# On GPUs

What torch and Triton show of the GPU path on a machine that has them and a GPU, and no vLLM: `{COMMAND}`.
[What has run on a GPU, and what has not](../guide/gpu.md)."""


def page(reports: Mapping[str, BenchReport]) -> str:
    """`reports` by the name of their file."""
    chapters = [line for name, report in reports.items() for line in _chapter(name, report)]
    return "\n".join([_HEAD, "", *(chapters or ["**Not measured**: the command has not been run on a GPU.", ""])])


def _chapter(name: str, report: BenchReport) -> list[str]:
    rows = report.rows
    widths = [f"m = {m}" for m in segments(rows)]
    return [
        *[f"## {report.machine.get('gpu', name)}", "", ran(report), "", *target_table(report), ""],
        *_part(
            "A forward of m tokens for each of b requests: milliseconds, and how many times longer m forwards take",
            ["requests", "pays from m =", *widths],
            forward_cells(rows),
        ),
        *_part("Milliseconds of a forward by its graphs", ["requests", "segment", "full", "piecewise", "none"], graph_cells(rows)),
        *_part("Microseconds of masking logits", ["vocabulary", "rows", "type", "masks", "ours", "xgrammar", "torch"], kernel_cells(rows)),
        *[f"- {note}" for note in notes(rows)],
        "",
    ]


def _part(title: str, heads: list[str], lines: list[list[str]]) -> list[str]:
    return [f"### {title}", "", *table(heads, lines), ""] if lines else []
