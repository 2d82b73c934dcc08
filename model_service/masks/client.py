"""The engine's end of the mask broadcaster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from model_service.masks.messages import Hello
from model_service.masks.shared_memory import MemoryAddress


@dataclass(frozen=True, slots=True)
class FrameRef:
    """Where a frame is to be read: `RingReader(ring).read(sequence, …)`; `size_bytes` long."""

    ring: MemoryAddress
    sequence: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What the frame of a step will have: `counts[i]` masks of `request_ids[i]`, one after another."""

    ring: MemoryAddress
    sequence: int
    request_ids: Sequence[str]
    counts: Sequence[int]


@dataclass
class MaskCounters:
    """Of one engine. `asked`: frames; `late`: those that did not come in time; `bytes`: of the frames that came; `naive_bytes`: of their
    masks as rows."""

    asked: int = 0
    late: int = 0
    reconnects: int = 0
    bytes: int = 0
    naive_bytes: int = 0


class MaskClient:
    """For one thread. Whatever happens to the broadcaster, nothing here takes longer than `deadline_s`, and nothing raises.

    `vocabulary`: what `GrammarTokenizer.portable` made. `clock`: seconds.
    """

    def __init__(
        self,
        socket_name: str,
        hello: Hello,
        vocabulary: bytes,
        clock: Callable[[], float] = time.monotonic,
        deadline_s: float = 0.02,
    ) -> None:
        self.counters = MaskCounters()

    @property
    def address(self) -> MemoryAddress | None:
        """Of the ring, while the broadcaster is there."""
        return None

    def begin(self, request_id: str, key: str, stops: tuple[int, ...] | None, tokens: Callable[[], Sequence[int]]) -> None:
        """`tokens()`: all that the grammar has taken so far; asked for when the broadcaster hears of the request, and for each broadcaster
        anew. `stops` None: the tokenizer's stop tokens."""

    def accept(self, request_id: str, tokens: Sequence[int]) -> None:
        """What `tokens()` has more than at the last call. Unknown ids are ignored."""

    def end(self, request_id: str) -> None:
        """Unknown ids are ignored."""

    def ask(self, rows: Sequence[tuple[str, Sequence[int]]]) -> Asked | None:
        """To be called once a step, with all requests that need masks and their drafts (none: one mask). None: no masks will come; else
        those of the requests that it names."""
        return None

    def wait(self, asked: Asked) -> FrameRef | None:
        """The frame, when the logits are there; None: it is not there by the deadline."""
        return None

    def close(self) -> None:
        """The broadcaster forgets the engine."""
