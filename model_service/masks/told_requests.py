"""The engine's requests, as far as the broadcaster has been told of them: decisions only, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from model_service.masks.messages import Begun, Step

Asking = tuple[str, int, Sequence[int]]
"""A request, its slot, its drafts."""


@dataclass(slots=True)
class _Request:
    """`slot` None: the broadcaster has not been told of it."""

    key: str
    stops: tuple[int, ...] | None
    tokens: Callable[[], Sequence[int]]
    slot: int | None = None
    ready: bool = False


class ToldRequests:
    """Slots are never used twice, so that what is said of one is never taken for another's."""

    def __init__(self) -> None:
        self._requests: dict[str, _Request] = {}
        self._by_slot: dict[int, _Request] = {}
        self._slots = count()
        self._untold: dict[str, _Request] = {}
        self._accepted: dict[int, list[int]] = {}
        self._ended: list[int] = []

    def begin(self, request_id: str, key: str, stops: tuple[int, ...] | None, tokens: Callable[[], Sequence[int]]) -> None:
        self.end(request_id)
        self._requests[request_id] = self._untold[request_id] = _Request(key, stops, tokens)

    def accept(self, request_id: str, tokens: Sequence[int]) -> None:
        request = self._requests.get(request_id)
        # Whoever is not told yet is told of all tokens then.
        if request is not None and request.slot is not None:
            self._accepted.setdefault(request.slot, []).extend(tokens)

    def end(self, request_id: str) -> None:
        request = self._requests.pop(request_id, None)
        if request is None:
            return
        self._untold.pop(request_id, None)
        if request.slot is not None:
            self._accepted.pop(request.slot, None)
            self._by_slot.pop(request.slot, None)
            self._ended.append(request.slot)

    def ready(self, rows: Sequence[tuple[str, Sequence[int]]]) -> list[Asking]:
        """Those of the rows that can be asked for."""
        requests = self._requests
        found = []
        for request_id, drafts in rows:
            request = requests.get(request_id)
            if request is not None and request.ready and request.slot is not None:
                found.append((request_id, request.slot, drafts))
        return found

    def step(self, number: int, asking: Sequence[Asking], late: int) -> Step | None:
        """All that is new, which counts as told from now on; None where there is nothing to say."""
        if not (asking or self._untold or self._accepted or self._ended):
            return None
        begun = [self._told(request) for request in self._untold.values()]
        rows = [(slot, list(drafts)) for _, slot, drafts in asking]
        step = Step(number, self._ended, begun, list(self._accepted.items()), rows, late)
        self._untold, self._accepted, self._ended = {}, {}, []
        return step

    def begin_anew(self) -> None:
        """There is a new broadcaster, which knows of nothing."""
        self._by_slot.clear()
        self._accepted, self._ended = {}, []
        self._untold = dict(self._requests)
        for request in self._requests.values():
            request.slot, request.ready = None, False

    def set_ready(self, slots: Sequence[int]) -> None:
        for slot in slots:
            if (request := self._by_slot.get(slot)) is not None:
                request.ready = True

    def set_failed(self, slots: Sequence[int]) -> None:
        for slot in slots:
            if (request := self._by_slot.get(slot)) is not None:
                request.ready = False

    def _told(self, request: _Request) -> Begun:
        request.slot = next(self._slots)
        self._by_slot[request.slot] = request
        return Begun(request.slot, request.key, request.stops, list(request.tokens()))
