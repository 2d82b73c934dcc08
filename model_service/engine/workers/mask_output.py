"""Masks on their way from the scheduler over the executor to the workers, in place of vLLM's `GrammarOutput` (vLLM 0.32:
`v1/core/sched/output.py`), which the engine core hands on as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from model_service.masks.client import Asked, MaskClient
from model_service.masks.ring.ring import FrameRef
from model_service.shared_memory import MemoryAddress


@dataclass(frozen=True, slots=True)
class MaskPart:
    """Masks of some requests of a step: the frame itself, or where it is to be read; `counts` are their rows of logits, in the order of
    the ids."""

    request_ids: Sequence[str]
    counts: Sequence[int]
    frame: bytes | FrameRef


@dataclass(frozen=True, slots=True)
class MaskParts:
    """What workers get. No request is in two parts. `known`: of requests with drafts, how many of these the masks are made for; the rest
    was not known yet, and must not be taken whatever it is."""

    parts: tuple[MaskPart, ...]
    known: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepMasks:
    """What the executor gets: what the broadcaster was asked for, and what has been filled here. `fill` fills here whatever does not
    come. `known` as in `MaskParts`."""

    client: MaskClient
    fill: Callable[[Sequence[str]], MaskPart]
    asked: Asked | None
    filled: MaskPart | None
    known: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Masks of the step."""
        return sum(sum(part.counts) for part in (self.asked, self.filled) if part is not None)


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
