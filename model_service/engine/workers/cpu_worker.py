"""The worker of a CPU (vLLM 0.32: `v1/worker/cpu_worker.py`, which wants to be imported ahead of all other workers)."""

from __future__ import annotations

from typing import Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput
from vllm.v1.worker.cpu_worker import CPUWorker

from model_service.engine.core_options import core_options
from model_service.engine.workers.forced_tokens import hook_updates
from model_service.engine.workers.mask_output import MaskParts
from model_service.engine.workers.masking import Masking
from model_service.engine.workers.verified_rows import hook_verification
from model_service.engine.workers.waiting import wait_asleep


class MaskcastCPUWorker(Masking, CPUWorker):
    """Also keeps seeded requests from ending the worker: where a step computes only a part of such a request, vLLM takes its generator
    back by an offset, which a CPU's generators do not have."""

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        if vllm_config.parallel_config.world_size > 1:
            wait_asleep()
        super().__init__(vllm_config, *args, **kwargs)

    def init_device(self) -> None:
        super().init_device()
        if core_options(self.vllm_config).jump_forward:
            hook_updates(self.model_runner)
        if core_options(self.vllm_config).lookahead:
            hook_verification(self.model_runner)

    def sample_tokens(self, grammar_output: GrammarOutput | MaskParts | None) -> Any:
        generators = self.model_runner.input_batch.generators
        # Nothing is sampled for these, so that their generators must stay as they are.
        unsampled = [row for row in generators if self.model_runner.discard_request_mask.np[row]]
        aside = {row: generators.pop(row) for row in unsampled}
        try:
            return super().sample_tokens(grammar_output)
        finally:
            generators.update(aside)
