"""A worker whose masks may come from frames (vLLM 0.32: `v1/worker/gpu_worker.py`, which a CPU's worker inherits from)."""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.core.sched.output import GrammarOutput

from model_service.engine.workers.mask_output import MaskParts
from model_service.engine.workers.worker_masks import WorkerMasks
from model_service.shared_memory import MemoryAddress


class Masking:
    """To be put before one of vLLM's workers. Its methods are called by name, by the executor in the engine core."""

    model_runner: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._masks = WorkerMasks()

    def attach_masks(self, address: MemoryAddress) -> bool:
        """Whether the ring is mapped from now on."""
        return self._masks.attach(address)

    def mask_counts(self) -> dict[str, int]:
        return dict(self._masks.counts)

    @torch.inference_mode()
    def sample_tokens(self, grammar_output: GrammarOutput | MaskParts | None) -> Any:
        if isinstance(grammar_output, MaskParts):
            self._masks.apply(grammar_output, self.model_runner)
            grammar_output = None
        return super().sample_tokens(grammar_output)  # type: ignore[misc]  # the worker's
