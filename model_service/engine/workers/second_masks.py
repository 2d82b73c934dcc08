"""Masks from frames in vLLM's second model runner (vLLM 0.32: `sample` in `v1/worker/gpu/model_runner.py`, beside it
`structured_outputs.py` and `sample/batch_shard.py`).

It computes logits when it is told to sample, and has a worker of its own lay bitmasks on them: ours stands in that one's place. What the
runner does with masks before and behind that stays its own: it shares a batch out among ranks, and refuses drafts that have no mask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from vllm.v1.core.sched.output import GrammarOutput

from model_service.engine.workers.mask_output import MaskParts
from model_service.engine.workers.worker_masks import WorkerMasks
from model_service.errors import EngineSettingsError

if TYPE_CHECKING:
    from vllm.v1.worker.gpu.input_batch import InputBatch


def hook_masks(runner: Any, masks: WorkerMasks) -> FrameOutputs:
    """Have the runner's logits masked from frames, wherever a step has some. Its model must have been loaded.

    Raises:
        EngineSettingsError: the model has several rows of logits for a request without drafts, where frames have one.
    """
    if runner.model_state.num_new_sampled_tokens_per_step != 1:
        raise EngineSettingsError("a broadcaster has no masks for a model that samples several tokens at a time: set `masks: in_process`")
    outputs = FrameOutputs(masks, runner.structured_outputs_worker)
    runner.structured_outputs_worker = outputs
    return outputs


class FrameOutputs:
    """`others`: the runner's own, for bitmasks, which vLLM's warm-up has; None where it has none, since it makes no logits."""

    def __init__(self, masks: WorkerMasks, others: Any) -> None:
        self._masks = masks
        self._others = others
        self._step: MaskParts | None = None

    def announced(self, masks: MaskParts) -> GrammarOutput:
        """What the runner is to be told of a step's masks: whose there are, and how many."""
        self._step = masks
        ids = [request_id for part in masks.parts for request_id in part.request_ids]
        count = sum(sum(part.counts) for part in masks.parts)
        return GrammarOutput(ids, np.arange(count, dtype=np.int32), [masks.known.get(request_id, 0) for request_id in ids])

    def over(self) -> None:
        """The step has been sampled from; a rank to which no masked request was given has not asked for its masks."""
        self._step = None

    def apply_grammar_bitmask(
        self, logits: torch.Tensor, input_batch: InputBatch, grammar_req_ids: list[str], grammar_bitmask: npt.NDArray[np.int32]
    ) -> None:
        """As vLLM's. Raises MaskError, as `WorkerMasks.put` does."""
        if self._step is None:
            self._others.apply_grammar_bitmask(logits, input_batch, grammar_req_ids, grammar_bitmask)
            return
        ids = input_batch.req_ids
        starts = input_batch.cu_num_logits_np.astype(np.intp) if input_batch.num_draft_tokens else None
        self._masks.put(self._step, logits, dict(zip(ids, range(len(ids)), strict=True)), starts)
