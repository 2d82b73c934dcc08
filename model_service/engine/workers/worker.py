"""The worker of a GPU (vLLM 0.32: `v1/worker/gpu_worker.py`). Nothing here, nor what it imports, may import a CPU's worker: that takes
streams, events and pinned memory out of torch, for the whole process (`v1/worker/cpu/shm.py`)."""

from __future__ import annotations

from typing import Any

from vllm.v1.worker.gpu_worker import Worker

from model_service.engine.core_options import core_options
from model_service.engine.workers.forced_tokens import hook_updates
from model_service.engine.workers.masking import Masking
from model_service.engine.workers.verified_rows import hook_verification
from model_service.masks.frames.logits import warm_up


class MaskcastWorker(Masking, Worker):
    def init_device(self) -> None:
        super().init_device()
        if core_options(self.vllm_config).jump_forward:
            hook_updates(self.model_runner)
        if core_options(self.vllm_config).lookahead:
            hook_verification(self.model_runner)

    def compile_or_warm_up_model(self) -> Any:
        times = super().compile_or_warm_up_model()
        if core_options(self.vllm_config).broadcaster is not None:
            warm_up(self.model_config.get_vocab_size(), self.model_config.head_dtype, self.device)
        return times
