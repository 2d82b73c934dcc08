"""The script for GPUs runs to its end without one, on what a machine without vLLM has; its figures say nothing then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from deployments.reporting.report import BenchReport
from load_tests.errors import BenchFailed
from load_tests.gpu.__main__ import PARTS, main
from load_tests.gpu.frames import masks
from load_tests.gpu.plan import SMALL
from model_service.masks.frames.encoding import encode
from model_service.masks.frames.frame import decode
from model_service.masks.frames.header import FREE
from tests.published.documents import ROOT

ABSENT = ("vllm", "ray", "pydantic", "msgspec", "fastapi", "transformers", "llguidance")


def ran(path: Path, *arguments: str) -> list[dict[str, object]]:
    app = typer.Typer()
    app.command()(main)
    CliRunner().invoke(app, ["--small", "--json", str(path), *arguments], catch_exceptions=False)
    return [dict(row) for row in BenchReport.read(path).rows]


def test_every_part_runs_and_is_right(tmp_path: Path) -> None:
    rows = ran(tmp_path / "small.json")
    assert {row["part"] for row in rows} == set(PARTS)
    assert not [row for row in rows if "failed" in row or "skipped" in row]
    assert {row["wrong"] for row in rows if "wrong" in row} == {0}
    assert {row["finite"] for row in rows if "finite" in row} == {True}
    assert not [row for row in rows if "waits" in row and row["waits"] is not None]


def test_frames_have_entries_of_every_kind() -> None:
    frame = decode(encode(masks(SMALL.frame_logits, SMALL.vocabularies[0]), SMALL.vocabularies[0]))
    entries = frame.header
    assert min(entries.allowed, entries.forbidden, entries.changed, entries.rows) > 0
    assert FREE in frame.index
    assert frame.index.min() < FREE


def test_parts_that_run_later_keep_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    ran(path, "--parts", "staged writes")
    rows = ran(path, "--parts", "apply")
    assert {row["part"] for row in rows} == {"staged writes", "apply"}


def test_what_has_not_begun_in_time_says_so(tmp_path: Path) -> None:
    assert {row["skipped"] for row in ran(tmp_path / "small.json", "--minutes", "0")} == {"no time was left"}


def test_figures_are_not_taken_where_there_is_no_gpu() -> None:
    with pytest.raises(BenchFailed, match="no GPU"):
        main(small=False)


def test_it_needs_nothing_that_such_a_machine_lacks() -> None:
    program = f"import sys, load_tests.gpu.__main__; print(*[name for name in {ABSENT!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=120, check=True)
    assert done.stdout.split() == []


def test_the_kernel_itself_is_measured_where_it_is_interpreted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.json"
    command = [sys.executable, "-m", "load_tests.gpu", "--small", "--parts", "kernel", "--json", str(path)]
    subprocess.run(command, capture_output=True, cwd=ROOT, env={**os.environ, "TRITON_INTERPRET": "1"}, timeout=240, check=False)
    rows = json.loads(path.read_text())["rows"]
    assert rows
    assert {row["wrong"] for row in rows} == {0}
    assert all(row["ours_us"] > row["torch_us"] for row in rows if row["rows"] > 1)
