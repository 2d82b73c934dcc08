from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from deployments.config import parse_settings
from deployments.local.environment import defaults, environment
from deployments.local.processes import SHARED_MEMORY, ProcessTree, finishes, segments_of

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork():
    os._exit(0)
os.setsid()
print(os.getpid(), flush=True)
time.sleep(600)
"""
LEAKING = """
from multiprocessing import resource_tracker, shared_memory
segment = shared_memory.SharedMemory(create=True, size=4096)
resource_tracker.unregister(segment._name, "shared_memory")
print(segment.name, flush=True)
input()
"""

LOCKING = """
from multiprocessing import get_context
print("up", flush=True)
input()
lock = get_context("spawn").Lock()
print(lock._semlock.name, flush=True)
input()
"""


def started(program: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, process.stdout.readline().strip()


def close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()
    process.wait()


def test_an_orphan_that_ignores_sigterm_is_ended() -> None:
    tree = ProcessTree()
    tree.watch()
    process, pid = started(STUBBORN)
    process.wait()
    assert int(pid) in {member.pid for member in tree.members()}
    tree.end(patience_s=0.2)
    close(process)
    assert not psutil.pid_exists(int(pid))


def test_processes_from_before_are_left_alone() -> None:
    process, _ = started("print('up', flush=True); input()")
    tree = ProcessTree()
    tree.watch()
    tree.end(patience_s=0.2)
    assert process.poll() is None
    process.communicate("\n")
    close(process)


@pytest.mark.parametrize("already_dead", [False, True])
def test_shared_memory_of_ended_processes_is_unlinked(already_dead: bool) -> None:
    tree = ProcessTree()
    tree.watch()
    process, name = started(LEAKING)
    assert name in segments_of(process.pid)
    if already_dead:
        process.kill()
        process.wait()
    tree.end(patience_s=5)
    close(process)
    assert not (SHARED_MEMORY / name).exists()


def test_a_semaphore_of_somebody_else_stays_for_the_children_that_he_starts() -> None:
    other, _ = started(LOCKING)
    assert other.stdin
    assert other.stdout
    tree = ProcessTree()
    tree.watch()
    other.stdin.write("\n")
    other.stdin.flush()
    name = f"sem.{other.stdout.readline().strip().removeprefix('/')}"
    assert (SHARED_MEMORY / name).exists()
    tree.end(patience_s=0.2)
    assert (SHARED_MEMORY / name).exists()
    assert name in segments_of(other.pid)
    other.communicate("\n")
    close(other)


def test_running_members_are_named_and_ended_ones_are_not() -> None:
    tree = ProcessTree()
    tree.watch()
    process, _ = started("print('up', flush=True); input()")
    name = psutil.Process(process.pid).name()
    assert name in tree.running()
    process.kill()
    psutil.wait_procs([psutil.Process(process.pid)], timeout=5)
    assert name not in tree.running()
    tree.end(patience_s=0.2)
    close(process)


def test_a_call_that_hangs_is_left_to_itself() -> None:
    release = threading.Event()
    assert finishes(lambda: None, within_s=5)
    assert not finishes(release.wait, within_s=0.01)
    release.set()


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    before = dict(os.environ)
    with environment(defaults(parse_settings({}), Path("/home/somebody")), {"TMPDIR": "/somewhere"}):
        assert os.environ["VLLM_LOGGING_LEVEL"] == "DEBUG"
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        assert os.environ["TMPDIR"] == "/somewhere"
    assert dict(os.environ) == before


def test_a_model_from_the_hub_may_be_fetched() -> None:
    assert "HF_HUB_OFFLINE" not in defaults(parse_settings({"model": {"path": "owner/name"}}), Path("/home/somebody"))
