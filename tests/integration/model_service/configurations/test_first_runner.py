"""Forced tokens in vLLM's first model runner, as it stands on a GPU."""

from __future__ import annotations

import subprocess
import sys

from tests.published.documents import ROOT

PROCESS = "tests.integration.model_service.configurations.first_runner_process"


def test_its_class_for_gpus_takes_them_as_the_one_for_processors() -> None:
    """Chunks, pauses, preemptions: every place is computed with its final token."""
    done = subprocess.run([sys.executable, "-m", PROCESS], capture_output=True, text=True, cwd=ROOT, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.splitlines()[-1]) > 100
