"""What the processes of an engine on a GPU import. vLLM's worker for CPUs replaces streams, events, pinned memory and the count of free
memory in torch for whatever process imports it: on a GPU, tokens would be read before they are written."""

from __future__ import annotations

import subprocess
import sys

import pytest

REPLICA = """
import model_service.engine.engine
from model_service.engine.arguments import parse_arguments
from model_service.settings import EngineSettings
parse_arguments(EngineSettings("folder", "model", on_gpu=True, mask_socket="somewhere"), "none")
"""
CORE = """
from vllm.utils.import_utils import resolve_obj_by_qualname
from model_service.engine.arguments import ASYNC_SCHEDULER, SCHEDULER
for name in (SCHEDULER, ASYNC_SCHEDULER):
    resolve_obj_by_qualname(name)
import model_service.engine.workers.executors
"""
WORKER = """
from vllm.utils.import_utils import resolve_obj_by_qualname
from model_service.engine.arguments import GPU_WORKER
resolve_obj_by_qualname(GPU_WORKER)
"""
REPLACED = """
import sys, torch
shim = "vllm.v1.worker.cpu.shm"
shims = [torch.cuda.Event, torch.cuda.Stream, torch.cuda.current_stream, torch.Tensor.record_stream, torch.accelerator.get_memory_info]
print(shim in sys.modules, *sorted({made.__module__ for made in shims if made.__module__.startswith("vllm")}))
"""


@pytest.mark.parametrize("process", [REPLICA, CORE, WORKER], ids=["replica", "core", "worker"])
def test_nothing_of_a_cpus_worker_is_in_torch(process: str) -> None:
    command = [sys.executable, "-c", process + REPLACED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False"]
