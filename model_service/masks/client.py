"""The engine's end of the mask broadcaster."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from grammar_service.errors import MaskcastError
from model_service.errors import FrameLate, MaskError
from model_service.masks.link import Link
from model_service.masks.messages import Failed, FromBroadcaster, Hello, Published, Ready, Welcome
from model_service.masks.request_ledger import RequestLedger
from model_service.masks.ring.ring import FrameRef
from model_service.shared_memory import MemoryAddress, OwnMemory

VOCABULARY = "maskcast-vocabulary"
RETRY_S = 1.0
MOST_LATE = 3
"""Frames in a row."""
_NONE_YET = Published(-1, 0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the frame of a step will have: `counts[i]` masks of `request_ids[i]`, one after another."""

    address: MemoryAddress
    sequence: int
    request_ids: Sequence[str]
    counts: Sequence[int]


class MaskClient:
    """For one thread. Whatever happens to the broadcaster, nothing here takes longer than `deadline_s`, and nothing raises.

    It is away when it does not answer, says what it should not, or is late too often; then it is tried anew once a second, and told of all
    requests. `vocabulary`: what `GrammarTokenizer.portable` made. `clock`: seconds. `link`: while it is there.

    Raises:
        MemoryUnavailable: there is no memory for the vocabulary.
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
        self._requests = RequestLedger()
        self.link: Link | None = None
        self._closed = False
        self._tried_at = -math.inf
        self._number = 0
        self._published = _NONE_YET
        self._late = 0
        self._late_in_a_row = 0
        self.late_frames = 0
        """Of all that were asked for, those that did not come, or not in time."""

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
        link = self._connected()
        if link is None or link.ring is None:
            return None
        ready = self._requests.ready(rows)
        step = self._requests.step(self._number, ready, self._late)
        if step is None:
            return None
        try:
            link.send(step)
        except (OSError, MaskError) as error:
            self._disconnect(error)
            return None
        self._number += 1
        self._late = 0
        ids, counts = [request_id for request_id, _, _ in ready], [len(drafts) + 1 for _, _, drafts in ready]
        return Asked(link.ring.address, step.number, ids, counts) if ready else None

    def wait(self, asked: Asked) -> FrameRef | None:
        """The frame, when the logits are there; None: it is not there by the deadline."""
        try:
            self._await(asked)
        except FrameLate as error:
            self._late_in_a_row += 1
            if self._late_in_a_row >= MOST_LATE:
                self._disconnect(error)
        except (OSError, MaskcastError) as error:
            self._disconnect(error)
        published = self._published
        if not self._holds(asked) or published.number != asked.sequence or not published.size_bytes:
            self._late += 1
            self.late_frames += 1
            return None
        return FrameRef(asked.address, asked.sequence, published.size_bytes)

    def frame(self, reference: FrameRef) -> bytes | None:
        """The frame itself, for workers that cannot read it there; None: it is gone."""
        try:
            return self.link.ring.read(reference) if self.link is not None and self.link.ring is not None else None
        except MaskError:
            return None

    def close(self) -> None:
        """The broadcaster forgets the engine; no masks come from then on. May be called again."""
        if self.link is not None:
            self.link.close()
            self.link = None
        if not self._closed:
            self._closed = True
            self._memory.close()

    def _connected(self) -> Link | None:
        """The connection, after what has been said on it."""
        try:
            now = self._clock()
            if self.link is None and now - self._tried_at >= RETRY_S and not self._closed:
                self._tried_at = now
                self.link = Link(self._name, self._hello)
            if self.link is not None:
                self._read(self.link)
        except (OSError, MaskcastError) as error:
            self._disconnect(error)
        return self.link

    def _disconnect(self, error: Exception) -> None:
        if self.link is not None:
            _log.warning("masks are filled in the engine: %s", error)
            self.link.close()
            self.link = None
        self._requests.reset()

    def _await(self, asked: Asked) -> None:
        """Until something is said of the frame, or of a later one. Raises FrameLate; OSError and MaskcastError: the broadcaster is away."""
        deadline = self._clock() + self._deadline_s
        while (link := self.link) is not None and self._holds(asked):
            self._read(link)
            if self._published.number >= asked.sequence:
                break
            left = max(0.0, deadline - self._clock())
            if not link.poll(left) and not left:
                raise FrameLate(f"mask frame {asked.sequence} was not published in time")
        self._late_in_a_row = 0

    def _holds(self, asked: Asked) -> bool:
        """Whether the broadcaster is still the one that was asked."""
        return self.link is not None and self.link.ring is not None and self.link.ring.address == asked.address

    def _read(self, link: Link) -> None:
        for message in link.read():
            self._handle(message)

    def _handle(self, message: FromBroadcaster) -> None:
        match message:
            case Published():
                self._published = message
            case Ready(slots):
                self._requests.set_ready(slots, True)
            case Failed(slots):
                self._requests.set_ready(slots, False)
            case Welcome():
                self._number = 0
                self._published = _NONE_YET
                self._late_in_a_row = 0
                self._requests.reset()
