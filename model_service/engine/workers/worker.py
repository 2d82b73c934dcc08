"""The worker of a GPU (vLLM 0.32: `v1/worker/gpu_worker.py`). Nothing here, nor what it imports, may import a CPU's worker: that takes
streams, events and pinned memory out of torch, for the whole process (`v1/worker/cpu/shm.py`)."""

from __future__ import annotations

from vllm.v1.worker.gpu_worker import Worker

from model_service.engine.workers.our_worker import OurWorker


class MaskcastWorker(OurWorker, Worker):
    pass
