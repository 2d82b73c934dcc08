"""vLLM's Ray executor, for masks from the broadcaster (vLLM 0.32: `v1/executor/ray_executor_v2.py`). Apart from the others, since it
imports Ray. Workers on other nodes cannot map the ring; frames are sent to all workers then."""

from __future__ import annotations

from vllm.v1.executor.ray_executor_v2 import RayExecutorV2

from model_service.engine.workers.executors import Delivering


class DeliveringRayExecutor(Delivering, RayExecutorV2):
    pass
