"""Forced tokens in vLLM's first model runner, as it stands on a GPU."""

from __future__ import annotations

import subprocess
import sys

from tests.published.documents import ROOT

PACKAGE = "tests.integration.model_service.configurations"


def printed(module: str) -> int:
    """By a module, in the end."""
    command = [sys.executable, "-m", f"{PACKAGE}.{module}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.splitlines()[-1])


def test_its_class_for_gpus_takes_them_as_the_one_for_processors() -> None:
    """Chunks, pauses, preemptions: every place is computed with its final token."""
    assert printed("first_runner_process") > 100


def test_it_takes_them_behind_samples_that_are_void() -> None:
    """Where steps overlap, under our scheduler: nothing is left of the sample that a segment has come in the place of."""
    assert printed("overlapping_runner_process") > 10
