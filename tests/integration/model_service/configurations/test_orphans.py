"""What an engine has started ends with the process that it serves, however that one ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.published.documents import ROOT

ENGINES = """
import sys
from tests.integration.model_service.running_engine import SETTINGS, RunningEngine
engines = []
for _ in sys.stdin:
    engines.append(RunningEngine(SETTINGS))
    print("ready", flush=True)
"""


@contextmanager
def starting_engines() -> Iterator[subprocess.Popen[str]]:
    """A process that starts an engine for each line that it is told; it is killed at the end of the block."""
    command = [sys.executable, "-c", ENGINES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def start_engine(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert any(line == "ready\n" for line in process.stdout), "it does not start"


def marked(process: subprocess.Popen[str], mark: str) -> psutil.Process:
    (found,) = (each for each in psutil.Process(process.pid).children(recursive=True) if mark in " ".join(each.cmdline()))
    return found


def assert_ended(processes: list[psutil.Process]) -> None:
    _, left = psutil.wait_procs(processes, timeout=30)
    for process in left:
        process.kill()
    assert not left


def test_an_engine_core_ends_with_a_process_that_is_killed() -> None:
    with starting_engines() as process:
        start_engine(process)
        started = psutil.Process(process.pid).children(recursive=True)
    assert_ended(started)
    assert len(started) >= 3, "the engine core, what it was forked from, and what cleans up behind it"


def test_it_ends_with_the_process_that_it_was_forked_from_and_the_next_one_is_forked_from_another() -> None:
    with starting_engines() as process:
        start_engine(process)
        core = marked(process, "VLLM::EngineCore")
        server = core.parent()
        assert server is not None
        server.kill()
        assert_ended([core])
        start_engine(process)
        another = marked(process, "VLLM::EngineCore").parent()
        assert another not in (None, server)
        assert another.ppid() == process.pid
