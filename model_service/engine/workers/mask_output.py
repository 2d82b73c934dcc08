"""Masks on their way from the scheduler over the executor to the workers, in place of vLLM's `GrammarOutput` (vLLM 0.32:
`v1/core/sched/output.py`), which the engine core hands on as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from model_service.masks.client import Asked, MaskClient
from model_service.masks.ring.ring import FrameRef


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
