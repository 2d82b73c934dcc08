"""A worker that takes forced tokens, and whose masks may come from frames (vLLM 0.32: `v1/worker/gpu_worker.py`, which a CPU's worker
inherits from)."""

from __future__ import annotations

from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput

from model_service.engine.core_options import core_options
from model_service.engine.workers.forced_tokens import hook_updates
from model_service.engine.workers.mask_output import MaskParts
from model_service.engine.workers.scheduled_drafts import hook_sampling
from model_service.engine.workers.second_masks import FrameOutputs, hook_masks
from model_service.engine.workers.second_runner import hook_additions
from model_service.engine.workers.verified_rows import hook_verification
from model_service.engine.workers.vocabulary_width import first_logits
from model_service.engine.workers.worker_masks import WorkerMasks
from model_service.shared_memory import MemoryAddress


class OurWorker:
    """To be put before one of vLLM's workers. Its methods are called by name, by the executor in the engine core."""

    vllm_config: VllmConfig
    model_runner: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._masks = WorkerMasks(most_rows(self.vllm_config))
        self._outputs: FrameOutputs | None = None
        self._width: int | None = None

    def init_device(self) -> None:
        super().init_device()  # type: ignore[misc]  # the worker's
        if core_options(self.vllm_config).jump_forward:
            hook = hook_additions if self.vllm_config.use_v2_model_runner else hook_updates
            hook(self.model_runner)
        if core_options(self.vllm_config).prompt_lookup:
            hook_sampling(self.model_runner)
        if core_options(self.vllm_config).lookahead:
            hook_verification(self.model_runner)

    def attach_masks(self, address: MemoryAddress) -> bool:
        """Whether the ring is mapped from now on."""
        return self._masks.attach(address)

    def mask_counts(self) -> dict[str, int]:
        return dict(self._masks.counts)

    def logits_width(self) -> int | None:
        """Of the logits that this worker samples from; None where it has none."""
        return self._width

    def compile_or_warm_up_model(self) -> Any:
        if self.vllm_config.use_v2_model_runner and core_options(self.vllm_config).broadcaster is not None:
            self._outputs = hook_masks(self.model_runner, self._masks)
        # Ahead of vLLM's: whatever is compiled after it counts as compiled in a step, where it is told or refused (`utils/jit_monitor.py`).
        self._try_logits()
        return super().compile_or_warm_up_model()  # type: ignore[misc]  # the worker's

    @torch.inference_mode()
    def _try_logits(self) -> None:
        logits = first_logits(self.model_runner)
        if logits is not None:
            self._width = logits.shape[-1]
            if core_options(self.vllm_config).broadcaster is not None:
                self._masks.warm_up(logits)

    @torch.inference_mode()
    def sample_tokens(self, grammar_output: GrammarOutput | MaskParts | None) -> Any:
        if not isinstance(grammar_output, MaskParts):
            return super().sample_tokens(grammar_output)  # type: ignore[misc]  # the worker's
        if self._outputs is None:
            self._masks.apply(grammar_output, self.model_runner)
            return super().sample_tokens(None)  # type: ignore[misc]
        sampled = super().sample_tokens(self._outputs.announced(grammar_output))  # type: ignore[misc]
        self._outputs.over()
        return sampled


def most_rows(config: VllmConfig) -> int:
    """Of logits that a step samples from."""
    return int(config.scheduler_config.max_num_seqs * (1 + config.num_speculative_tokens))
