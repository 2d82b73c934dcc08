"""Engine cores are forked from a process that has imported what they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.queues import Queue

import psutil
import pytest

from tests.integration.model_service.running_engine import RunningEngine

SERVER, CORE = "multiprocessing.forkserver", "VLLM::EngineCore"


def put_environment(queue: Queue[str | None], name: str) -> None:
    queue.put(os.environ.get(name))


def cores() -> Iterator[psutil.Process]:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if CORE in " ".join(process.cmdline()):
                yield process


def server_of(core: psutil.Process) -> psutil.Process:
    parent = core.parent()
    assert parent is not None
    assert SERVER in " ".join(parent.cmdline())
    return parent


def test_a_core_is_forked_from_a_process_without_threads(jumping: RunningEngine) -> None:
    (server,) = {server_of(core) for core in cores()}
    assert server.num_threads() == 1


def test_what_is_forked_has_the_environment_of_today(jumping: RunningEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    import vllm.v1.engine.utils as launching  # the engine has told it how to begin cores

    context = launching.get_mp_context()
    for value in ("one", "another"):
        monkeypatch.setenv("MASKCAST_TEST_OF_FORKING", value)
        queue = context.Queue()
        process = context.Process(target=put_environment, args=(queue, "MASKCAST_TEST_OF_FORKING"))
        process.start()
        assert queue.get(timeout=60) == value
        process.join()
