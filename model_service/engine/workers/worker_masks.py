"""A worker's masks from frames (vLLM 0.32: `sample_tokens` in `v1/worker/gpu_model_runner.py`). On the first model runner they are applied
to the logits that the forward has left, before the runner samples from them; the second makes its logits only then (`second_masks.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from model_service.engine.workers.mask_output import MaskPart, MaskParts
from model_service.errors import FrameGone, MemoryUnavailable
from model_service.masks.frames.frame import Frame, decode
from model_service.masks.frames.logits import Staging, warm_up
from model_service.masks.frames.places import Places, first_logits, places
from model_service.masks.ring.ring import FrameRef, RingReader
from model_service.shared_memory import MemoryAddress


class WorkerMasks:
    """Of one worker, whose steps have at most so many rows of logits. `counts`: frames that were read from the ring, and frames that were
    sent along."""

    def __init__(self, most_rows: int) -> None:
        self._ring: RingReader | None = None
        self._staging = Staging(most_rows)
        self.counts: Counter[str] = Counter()

    def attach(self, address: MemoryAddress) -> bool:
        """Map a ring in place of the one before; False where it cannot be reached from here."""
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        try:
            self._ring = RingReader(address)
        except MemoryUnavailable:
            return False
        return True

    def warm_up(self, logits: torch.Tensor) -> None:
        """Compile what a step would have to wait for, by masking such logits [1, V]; they are spoilt."""
        warm_up(logits, self._staging)

    def apply(self, masks: MaskParts, runner: Any) -> None:
        """To the logits of the first runner's last forward, if this worker has them. Raises MaskError, as `put` does."""
        state = runner.execute_model_state
        if state is not None:
            row_of, drafts = runner.input_batch.req_id_to_index, state.scheduler_output.scheduled_spec_decode_tokens
            self.put(masks, state.logits, row_of, first_logits(row_of, drafts))

    def put(self, masks: MaskParts, logits: torch.Tensor, row_of: Mapping[str, int], starts: Places | None) -> None:
        """On the logits [n, V], in place; the others are as in `places`.

        Raises:
            MaskError: a frame that was published has gone or is broken, which no broadcaster that keeps to its protocol does. This worker
                must not sample without it, nor from another mask than its peers.
        """
        for part in masks.parts:
            found = places(part.request_ids, part.counts, row_of, starts, len(logits))
            self._frame(part).arranged(found).apply(logits, self._staging)

    def _frame(self, part: MaskPart) -> Frame:
        if not isinstance(part.frame, FrameRef):
            self.counts["inline"] += 1
            return decode(part.frame)
        if self._ring is None:
            raise FrameGone("the frame is in a ring that is not mapped")
        self.counts["mapped"] += 1
        return decode(self._ring.read(part.frame))
