"""What the processes of an engine on a GPU import. vLLM's worker for CPUs replaces streams, events, pinned memory and the count of free
memory in torch for whatever process imports it: on a GPU, tokens would be read before they are written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

REPLICA = """
import model_service.engine.engine
from model_service.engine.arguments import parse_arguments
from model_service.settings import EngineSettings
parse_arguments(EngineSettings("folder", "model", gpus_per_worker=1, mask_socket="somewhere"))
"""
CORE = """
from vllm.utils.import_utils import resolve_obj_by_qualname
from model_service.engine.configuration import ASYNC_SCHEDULER, SCHEDULER
for name in (SCHEDULER, ASYNC_SCHEDULER):
    resolve_obj_by_qualname(name)
import model_service.engine.workers.executors
"""
WORKER = """
from vllm.utils.import_utils import resolve_obj_by_qualname
from model_service.engine.configuration import GPU_WORKER
resolve_obj_by_qualname(GPU_WORKER)
"""
REPLACED = """
import sys, torch
shim, names = "vllm.v1.worker.cpu.shm", ("Event", "Stream", "current_stream")
print(shim in sys.modules, *[name for name in names if getattr(torch.cuda, name).__module__ == shim])
"""


IMPORTS = {"replica": REPLICA, "core": CORE, "worker": WORKER}


def imported(imports: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", imports + REPLACED], capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def processes() -> Iterator[Mapping[str, Future[subprocess.CompletedProcess[str]]]]:
    """Side by side: each is nothing but imports, of many seconds."""
    with ThreadPoolExecutor() as threads:
        yield {name: threads.submit(imported, imports) for name, imports in IMPORTS.items()}


@pytest.mark.parametrize("process", IMPORTS)
def test_nothing_of_a_cpus_worker_is_in_torch(process: str, processes: Mapping[str, Future[subprocess.CompletedProcess[str]]]) -> None:
    done = processes[process].result()
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False"]
