"""The engine's end of the mask broadcaster."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from model_service.errors import FrameLate, MaskError
from model_service.masks.link import Link
from model_service.masks.messages import Failed, FromBroadcaster, Hello, Ready, Step, Welcome
from model_service.masks.shared_memory import MemoryAddress, OwnMemory
from model_service.masks.told_requests import ToldRequests

VOCABULARY = "maskcast-vocabulary"
RETRY_S = 1.0
MOST_LATE = 3
"""Frames in a row."""
_ROW_BYTES = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FrameRef:
    """Where a frame is to be read: `RingReader(address).read(sequence, …)`; `size_bytes` long."""

    address: MemoryAddress
    sequence: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What the frame of a step will have: `counts[i]` masks of `request_ids[i]`, one after another."""

    address: MemoryAddress
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

    It is away when it does not answer, says what it should not, or is late too often; then it is tried anew once a second, and told of all
    requests. `vocabulary`: what `GrammarTokenizer.portable` made. `clock`: seconds.

    Raises:
        RingUnavailable: there is no memory for the vocabulary.
    """

    def __init__(
        self, socket_name: str, hello: Hello, vocabulary: bytes, clock: Callable[[], float] = time.monotonic, deadline_s: float = 0.02
    ) -> None:
        self._name = socket_name
        self._clock = clock
        self._deadline_s = deadline_s
        self._memory = OwnMemory(VOCABULARY, len(vocabulary))
        self._memory.map[:] = vocabulary
        self._hello = msgspec.structs.replace(hello, vocabulary=self._memory.address)
        self._row_bytes = _ROW_BYTES * ((hello.vocab_size + 31) // 32)
        self._requests = ToldRequests()
        self._link: Link | None = None
        self._closed = False
        self._tried_at = -math.inf
        self._number = 0
        self._late_in_a_row = 0
        self._late_told = 0
        self.counters = MaskCounters()

    @property
    def address(self) -> MemoryAddress | None:
        """Of the ring, while the broadcaster is there."""
        return self._link.address if self._link is not None else None

    def begin(self, request_id: str, key: str, stops: tuple[int, ...] | None, tokens: Callable[[], Sequence[int]]) -> None:
        """`tokens()`: all that the grammar has taken so far, none of which is to be told to `accept` again; called by `ask`, for each
        broadcaster anew. `stops` None: the tokenizer's stop tokens."""
        self._requests.begin(request_id, key, stops, tokens)

    def accept(self, request_id: str, tokens: Sequence[int]) -> None:
        """What the grammar has taken since. Unknown ids are ignored."""
        self._requests.accept(request_id, tokens)

    def end(self, request_id: str) -> None:
        """Unknown ids are ignored."""
        self._requests.end(request_id)

    def ask(self, rows: Sequence[tuple[str, Sequence[int]]]) -> Asked | None:
        """To be called once a step, with all requests that need masks and their drafts (none: one mask). None: no masks will come; else
        those of the requests that it names."""
        link = self._look()
        if link is None or link.address is None:
            return None
        ready = self._requests.ready(rows)
        step = self._requests.step(self._number, ready, self.counters.late - self._late_told)
        if step is None:
            return None
        try:
            link.send(step)
        except (OSError, MaskError) as error:
            self._leave(error)
            return None
        self._number += 1
        self._late_told = self.counters.late
        return self._asked(link.address, step, ready) if ready else None

    def wait(self, asked: Asked) -> FrameRef | None:
        """The frame, when the logits are there; None: it is not there by the deadline."""
        size = self._size(asked)
        if not size:
            self.counters.late += 1
            return None
        self.counters.bytes += size
        self.counters.naive_bytes += sum(asked.counts) * self._row_bytes
        return FrameRef(asked.address, asked.sequence, size)

    def frame(self, reference: FrameRef) -> bytes | None:
        """The frame itself, for workers that cannot read it there; None: it is gone."""
        link = self._link
        if link is None or link.ring is None or link.address != reference.address:
            return None
        try:
            return link.ring.read(reference.sequence, self._clock())
        except MaskError:
            return None

    def close(self) -> None:
        """The broadcaster forgets the engine; no masks come from then on. May be called again."""
        if self._link is not None:
            self._link.close()
            self._link = None
        if not self._closed:
            self._closed = True
            self._memory.close()

    def _look(self) -> Link | None:
        """The connection, after what has been said on it."""
        try:
            if self._link is None:
                self._connect()
            if self._link is not None:
                for message in self._link.read():
                    self._hear(message)
        except (OSError, MaskError) as error:
            self._leave(error)
        return self._link

    def _connect(self) -> None:
        now = self._clock()
        if now - self._tried_at >= RETRY_S and not self._closed:
            self._tried_at = now
            self._link = Link(self._name, self._hello, self._clock)

    def _hear(self, message: FromBroadcaster) -> None:
        match message:
            case Ready(slots):
                self._requests.set_ready(slots)
            case Failed(slots):
                self._requests.set_failed(slots)
            case Welcome():
                self._number = 0
                self._late_in_a_row = 0
                self._requests.begin_anew()
                self.counters.reconnects += 1

    def _leave(self, error: Exception) -> None:
        if self._link is not None:
            _log.warning("masks are filled in the engine: %s", error)
            self._link.close()
            self._link = None
        self._requests.begin_anew()

    def _asked(self, address: MemoryAddress, step: Step, ready: Sequence[tuple[str, int, Sequence[int]]]) -> Asked:
        self.counters.asked += 1
        return Asked(address, step.number, [request_id for request_id, _, _ in ready], [len(drafts) + 1 for _, _, drafts in ready])

    def _size(self, asked: Asked) -> int:
        """Of the frame; 0 where there is none. Goes away from a broadcaster that is late too often."""
        link = self._link
        if link is None or link.ring is None or link.address != asked.address:
            return 0
        try:
            size = link.ring.size(asked.sequence, self._clock() + self._deadline_s)
        except FrameLate as error:
            self._late_in_a_row += 1
            if self._late_in_a_row >= MOST_LATE:
                self._leave(error)
            return 0
        except MaskError as error:
            self._leave(error)
            return 0
        self._late_in_a_row = 0
        return size
