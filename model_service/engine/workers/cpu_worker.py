"""The worker of a CPU (vLLM 0.32: `v1/worker/cpu_worker.py`, which wants to be imported ahead of all other workers)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput
from vllm.v1.sample import rejection_sampler
from vllm.v1.worker.cpu_worker import CPUWorker

from model_service.engine.workers.mask_output import MaskParts
from model_service.engine.workers.our_worker import OurWorker
from model_service.engine.workers.waiting import wait_asleep

SHARED_MEMORY = Path("/dev/shm")


class MaskcastCPUWorker(OurWorker, CPUWorker):
    """Also keeps seeded requests from ending the worker: where a step computes only a part of such a request, vLLM takes its generator
    back by an offset, which a CPU's generators do not have. And lets drafts be judged by their request's own temperature: vLLM's kernel
    writes that into a copy (`utils/cpu_triton_utils.py`), and what is left in its place takes nearly all of them."""

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        if vllm_config.parallel_config.world_size > 1:
            wait_asleep()
        super().__init__(vllm_config, *args, **kwargs)
        rejection_sampler.expand_batch_to_tokens = _expanded

    def init_device(self) -> None:
        super().init_device()
        # All have mapped it by now; what is forked, or killed, ends without the destructor that would unlink it.
        for path in SHARED_MEMORY.glob(f"{os.environ['VLLM_DIST_IDENT']}-*-cpushm_{self.rank}"):
            path.unlink()

    def sample_tokens(self, grammar_output: GrammarOutput | MaskParts | None) -> Any:
        if self.use_v2_model_runner:
            return super().sample_tokens(grammar_output)  # it has no generators
        generators = self.model_runner.input_batch.generators
        # Nothing is sampled for these, so that their generators must stay as they are.
        unsampled = [row for row in generators if self.model_runner.discard_request_mask.np[row]]
        aside = {row: generators.pop(row) for row in unsampled}
        try:
            return super().sample_tokens(grammar_output)
        finally:
            generators.update(aside)


def _expanded(values: torch.Tensor, ends: torch.Tensor, _: int, replace_from: float = 0, replace_to: float = 0) -> torch.Tensor:
    """The value of each request once for each of its drafts, which end at `ends`."""
    drafts = torch.diff(ends, prepend=ends.new_zeros(1))
    expanded = values.repeat_interleave(drafts.long())
    return expanded.masked_fill_(expanded == replace_from, replace_to)
