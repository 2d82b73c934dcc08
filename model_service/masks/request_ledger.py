"""What of the engine's requests has been sent to the broadcaster: decisions only, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from model_service.masks.messages import Begun, Step

ReadyRow = tuple[str, int, Sequence[int]]
"""A request, its slot, its drafts."""


@dataclass(slots=True)
class _Request:
    """`slot` None: the broadcaster does not know of it."""

    key: str
    stops: tuple[int, ...] | None
    tokens: Callable[[], Sequence[int]]
    slot: int | None = None
    ready: bool = False


class RequestLedger:
    """Slots are never used twice, so that what is said of one is never taken for another's."""

    def __init__(self) -> None:
        self._requests: dict[str, _Request] = {}
        self._by_slot: dict[int, _Request] = {}
        self._slots = count()
        self._unsent: dict[str, _Request] = {}
        self._accepted: dict[int, list[int]] = {}
        self._ended: list[int] = []

    def begin(self, request_id: str, key: str, stops: tuple[int, ...] | None, tokens: Callable[[], Sequence[int]]) -> None:
        self.end(request_id)
        self._requests[request_id] = self._unsent[request_id] = _Request(key, stops, tokens)

    def accept(self, request_id: str, tokens: Sequence[int]) -> None:
        request = self._requests.get(request_id)
        # With a request all of its tokens are sent.
        if request is not None and request.slot is not None:
            self._accepted.setdefault(request.slot, []).extend(tokens)

    def end(self, request_id: str) -> None:
        request = self._requests.pop(request_id, None)
        if request is None:
            return
        self._unsent.pop(request_id, None)
        if request.slot is not None:
            self._accepted.pop(request.slot, None)
            self._by_slot.pop(request.slot, None)
            self._ended.append(request.slot)

    def ready(self, rows: Sequence[tuple[str, Sequence[int]]]) -> list[ReadyRow]:
        """Those of the rows that can be asked for."""
        known = ((request_id, self._requests.get(request_id), drafts) for request_id, drafts in rows)
        return [(name, found.slot, drafts) for name, found, drafts in known if found is not None and found.ready and found.slot is not None]

    def step(self, number: int, rows_asked: Sequence[ReadyRow], late: int) -> Step | None:
        """All that is new, which counts as sent from now on; None where there is nothing to say."""
        if not (rows_asked or self._unsent or self._accepted or self._ended):
            return None
        begun = [self._begun(request) for request in self._unsent.values()]
        rows = [(slot, list(drafts)) for _, slot, drafts in rows_asked]
        step = Step(number, self._ended, begun, list(self._accepted.items()), rows, late)
        self._unsent, self._accepted, self._ended = {}, {}, []
        return step

    def reset(self) -> None:
        """There is a new broadcaster, which knows of nothing."""
        self._by_slot.clear()
        self._accepted, self._ended = {}, []
        self._unsent = dict(self._requests)
        for request in self._requests.values():
            request.slot, request.ready = None, False

    def set_ready(self, slots: Sequence[int], ready: bool) -> None:
        """Whether masks of these may be asked for."""
        for slot in slots:
            if (request := self._by_slot.get(slot)) is not None:
                request.ready = ready

    def _begun(self, request: _Request) -> Begun:
        request.slot = next(self._slots)
        self._by_slot[request.slot] = request
        return Begun(request.slot, request.key, request.stops, list(request.tokens()))
