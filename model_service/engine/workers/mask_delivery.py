"""What workers are sent of a step's masks: where the frame is, or the frame itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from model_service.engine.workers.mask_output import MaskPart, MaskParts, StepMasks
from model_service.masks.client import Asked
from model_service.masks.ring.ring import FrameRef
from model_service.shared_memory import MemoryAddress

Attach = Callable[[MemoryAddress], "Future[list[bool]]"]


class MaskDelivery:
    """For the executor. `attach` has every worker map a ring and tells, later, which of them could. Until all have, since some may be on
    another node, frames are sent along."""

    def __init__(self, attach: Attach) -> None:
        self._attach = attach
        self._address: MemoryAddress | None = None
        self._attaching: Future[list[bool]] | None = None
        self._attached = False

    def parts(self, step: StepMasks) -> MaskParts:
        """All of a step's masks. Waits for the broadcaster's up to the deadline, which counts from the end of the step's forward on a
        CPU, and from its launch on a GPU."""
        parts = [] if step.filled is None else [step.filled]
        if step.asked is not None:
            parts.append(self._awaited(step, step.asked))
        return MaskParts(tuple(parts), step.known)

    def _awaited(self, step: StepMasks, asked: Asked) -> MaskPart:
        frame: FrameRef | bytes | None = step.client.wait(asked)
        if isinstance(frame, FrameRef) and not self._reaches(frame.address):
            frame = step.client.frame(frame)
        return step.fill(asked.request_ids) if frame is None else MaskPart(asked.request_ids, asked.counts, frame)

    def _reaches(self, address: MemoryAddress) -> bool:
        """Whether all workers are known to have mapped the ring."""
        if address != self._address:
            self._address, self._attached = address, False
            self._attaching = self._attach(address)
        if self._attaching is not None and self._attaching.done():
            self._attached, self._attaching = all(self._attaching.result()), None
        return self._attached
