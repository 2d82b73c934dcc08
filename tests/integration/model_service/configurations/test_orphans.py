"""What an engine has started ends with the process that it serves, however that one ends."""

from __future__ import annotations

import subprocess
import sys

import psutil

from tests.published.documents import ROOT

ENGINE = """
from threading import Event
from tests.integration.model_service.running_engine import SETTINGS, RunningEngine
engine = RunningEngine(SETTINGS)
print("ready", flush=True)
Event().wait()
"""


def test_an_engine_core_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ENGINE], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert any(line == "ready\n" for line in process.stdout), "it does not start"
            started = psutil.Process(process.pid).children(recursive=True)
        finally:
            process.kill()
    _, left = psutil.wait_procs(started, timeout=30)
    for child in left:
        child.kill()
    assert not left
    assert len(started) >= 2, "the engine core, and what cleans up behind it"
