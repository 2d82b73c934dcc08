"""Forced tokens get into vLLM's second model runner whatever becomes of their requests meanwhile: chunks, pauses, preemptions."""

from __future__ import annotations

import subprocess
import sys

from tests.documents import ROOT

SEEDS = range(12)


def test_every_place_is_computed_with_its_final_token() -> None:
    command = [sys.executable, "-m", "tests.integration.model_service.second_runner_process", *map(str, SEEDS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) > 100
