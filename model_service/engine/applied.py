"""A worker's masks from frames (vLLM 0.32: `sample_tokens` in `v1/worker/gpu_model_runner.py`, first model runner): they are applied to the
logits that the forward has left, before the runner samples from them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from model_service.engine.mask_output import MaskPart, MaskParts
from model_service.masks.client import FrameRef
from model_service.masks.frame import Frame, decode
from model_service.masks.mapped_ring import MappedRing
from model_service.masks.places import places
from model_service.masks.shared_memory import MemoryAddress


class AppliedMasks:
    """Of one worker. `counts`: frames that were read from the ring, and frames that were sent along."""

    def __init__(self) -> None:
        self._ring = MappedRing()
        self.counts: Counter[str] = Counter()

    def attach(self, address: MemoryAddress) -> bool:
        """Map a ring in place of the one before; False where it cannot be reached from here."""
        return self._ring.attach(address)

    def apply(self, masks: MaskParts, runner: Any) -> None:
        """To the logits of the runner's last forward, if this worker has them.

        Raises:
            MaskError: a frame that was published has gone or is broken, which no broadcaster that keeps to its protocol does. This worker
                must not sample without it, nor from another mask than its peers.
        """
        state = runner.execute_model_state
        if state is None:
            return
        row_of, drafts = runner.input_batch.req_id_to_index, state.scheduler_output.scheduled_spec_decode_tokens
        for part in masks.parts:
            found = places(part.request_ids, part.counts, row_of, drafts, len(state.logits))
            self._frame(part).arranged(found).apply(state.logits)

    def _frame(self, part: MaskPart) -> Frame:
        mapped = isinstance(part.frame, FrameRef)
        self.counts["mapped" if mapped else "inline"] += 1
        return decode(self._ring.read(part.frame) if isinstance(part.frame, FrameRef) else part.frame)
