"""Requests of one grammar that wait together travel together, so that the engine admits them in one step.

Events in, decisions out, no clock and no I/O: `arrived` and `left` tell what happens, `tick` says who goes where, `next_tick` when to ask
again. A shell ticks once in each turn of its event loop in which something arrived or a replica got room.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from router.dividing import NONE, Spare, divide
from router.parameters import Parameters

SELDOM_S = 0.25


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request; `key` is its grammar's, or like no other where it has none; `arrived_at` in seconds of the clock of `tick`, which does not
    run backwards. Prompts of one `prefix` begin alike; an empty one says nothing."""

    request: str
    key: str
    prefill_tokens: int
    arrived_at: float
    prefix: str = ""


Ranks = Callable[[str, int, str, bool], Sequence[str]]
"""Replicas for a key, the best first, as many as so many prefill tokens need; of equal ones, those of the prefix. It is told as well
whether the key has waited for `patience_s`."""
SpareOf = Callable[[str, int], Spare | None]
"""What a replica can take for so many requests that wait together, None where nobody knows: then it can take a full budget."""
Prefers = Callable[[str, Sequence[str]], Sequence[int]]
"""The places of these replicas in the order in which a prefix ranks them."""


@dataclass(frozen=True, slots=True)
class Release:
    """These requests, oldest first, go to this replica now."""

    replica: str
    key: str
    requests: tuple[str, ...]


class _Group:
    """What waits for one grammar, oldest first; `tokens` of all of it. Until `retry_at` it waits for room at `ranks`, if there are any, and
    is first in line there since `first_at`."""

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.tokens = 0
        self.retry_at = -math.inf
        self.first_at = math.inf
        self.ranks: Sequence[str] = ()

    @property
    def oldest_at(self) -> float:
        return self.waiting[0].arrived_at

    def append(self, waiting: Waiting) -> None:
        self.waiting.append(waiting)
        self.tokens += waiting.prefill_tokens

    def take(self) -> Waiting:
        waiting = self.waiting.popleft()
        self.tokens -= waiting.prefill_tokens
        return waiting

    def remove(self, request: str) -> None:
        for waiting in [one for one in self.waiting if one.request == request]:
            self.waiting.remove(waiting)
            self.tokens -= waiting.prefill_tokens


class Grouping:
    """`spare` is asked for room in `tick`, as `ranks` is, for the prefix of a group's oldest request; of what it releases itself it keeps
    count, and `released` hears of it before the next group is ranked. A group that is divided is divided by prefixes as far as the shares
    allow it, where `prefers` tells how these rank replicas.

    A request that finds nothing of its grammar waiting is due at once. What is due goes oldest first, and where a replica cannot take
    all of a group, the rest keeps its place before younger ones: nobody waits for later arrivals without end.
    """

    def __init__(
        self,
        ranks: Ranks,
        spare: SpareOf,
        parameters: Parameters | None = None,
        prefers: Prefers | None = None,
        released: Callable[[Release], None] = lambda release: None,
    ) -> None:
        self._ranks = ranks
        self._spare = spare
        self._parameters = parameters or Parameters()
        self.prefill_budget = self._parameters.prefill_budget
        """May be set to what engines say."""
        self._prefers = prefers
        self._released = released
        self._roomier: set[str] = set()
        self.waiting_for: Counter[str] = Counter()
        """How many requests wait for each replica, as of the last tick: their first rank, which had no room."""
        self._groups: dict[str, _Group] = {}
        self._keys: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def arrived(self, waiting: Waiting) -> None:
        """An id that waits already is not taken twice."""
        if waiting.request not in self._keys:
            self._keys[waiting.request] = waiting.key
            self._groups.setdefault(waiting.key, _Group()).append(waiting)

    def left(self, request: str) -> None:
        """A request was cancelled; unknown ones change nothing."""
        key = self._keys.pop(request, None)
        if key is not None:
            self._groups[key].remove(request)
            self._drop_if_empty(key)

    def roomier(self, replica: str) -> None:
        """It may have got room."""
        self._roomier.add(replica)

    def tick(self, now: float) -> list[Release]:
        """Who goes, groups of the oldest requests first."""
        releases: list[Release] = []
        room = _Room(self._spare, self.prefill_budget)
        self.waiting_for.clear()
        for group in self._groups.values():
            if group.ranks:
                self.waiting_for[group.ranks[0]] += len(group.waiting)
        for key, group in sorted(self._groups.items(), key=lambda item: item[1].oldest_at):
            if now < self._due_at(group):
                continue
            if is_behind := room.is_closed(group.ranks):
                group.first_at = math.inf
            if now < group.retry_at and (is_behind or self._roomier.isdisjoint(group.ranks)):
                room.close(group.ranks)
            else:
                releases += self._release(key, group, room, now)
                self._drop_if_empty(key)
        self._roomier.clear()
        return releases

    def next_tick(self) -> float | None:
        """When to ask again if nothing happens before; None when nobody waits."""
        return min((max(self._due_at(group), group.retry_at) for group in self._groups.values()), default=None)

    def _due_at(self, group: _Group) -> float:
        complete = len(group.waiting) == 1 or group.tokens >= self.prefill_budget
        return group.oldest_at + (0.0 if complete else self._parameters.window_s)

    def _release(self, key: str, group: _Group, room: _Room, now: float) -> list[Release]:
        # One request cannot be divided, however long it is.
        tokens = group.tokens if len(group.waiting) > 1 else 0
        group.ranks = ranks = self._ranks(key, tokens, group.waiting[0].prefix, self._has_waited(group, self._parameters.patience_s, now))
        sent: dict[str, list[str]] = {}
        if not room.is_closed(ranks):
            group.first_at = min(group.first_at, now)
            self._fill(group, room, sent, now)
            if sent and now < group.first_at + self._parameters.hold_s:
                group.first_at = now
        while ranks and group.waiting and self._has_waited(group, self._parameters.seat_patience_s, now):
            sent.setdefault(ranks[0], []).append(group.take().request)
        group.retry_at = self._retry_at(group, now)
        releases = [Release(replica, key, tuple(requests)) for replica, requests in sent.items()]
        for release in releases:
            for request in release.requests:
                del self._keys[request]
            self._released(release)
        return releases

    def _retry_at(self, group: _Group, now: float) -> float:
        if not group.waiting:
            return now
        numbers, soon = self._parameters, now + self._parameters.retry_s
        if self._has_waited(group, numbers.seat_patience_s, now):
            return soon  # there is no replica to go to
        later = max(soon, min(2 * now - group.oldest_at, now + SELDOM_S))
        if now < group.first_at + numbers.hold_s:
            later = min(later, group.first_at + numbers.hold_s)
        until = numbers.seat_patience_s if self._has_waited(group, numbers.patience_s, now) else numbers.patience_s
        return min(group.oldest_at + until, later)

    def _has_waited(self, group: _Group, seconds: float, now: float) -> bool:
        return now >= group.oldest_at + seconds

    def _fill(self, group: _Group, room: _Room, sent: dict[str, list[str]], now: float) -> None:
        together = len(group.waiting) if now < group.first_at + self._parameters.hold_s else 1
        places = [room.at(replica, together) for replica in group.ranks]
        if self._has_waited(group, self._parameters.patience_s, now):
            places = [Spare(self.prefill_budget, place.requests) for place in places]
        considered = list(islice(group.waiting, _seats(places)))

        def preferred(number: int) -> Sequence[int]:
            prefix = considered[number].prefix
            return self._prefers(prefix, group.ranks) if prefix and self._prefers and self._parameters.prefix_divides else ()

        shares = divide([waiting.prefill_tokens for waiting in considered], places, preferred)
        for share in shares:
            replica, waiting = group.ranks[share], group.take()
            sent.setdefault(replica, []).append(waiting.request)
            room.take(replica, waiting.prefill_tokens)
        if group.waiting:
            room.close(group.ranks)

    def _drop_if_empty(self, key: str) -> None:
        if not self._groups[key].waiting:
            del self._groups[key]


class _Room:
    """What is left of everybody's spare capacity in the course of one tick."""

    def __init__(self, spare: SpareOf, budget: int) -> None:
        self._asked = spare
        self._budget = budget
        self._left: dict[str, Spare] = {}

    def at(self, replica: str, together: int) -> Spare:
        if replica not in self._left:
            spare = self._asked(replica, 1) or Spare(self._budget, self._budget)
            self._left[replica] = Spare(min(spare.prefill_tokens, self._budget), spare.requests)
        left = self._left[replica]
        if together > 1 and left.requests > 0 and (for_all := self._asked(replica, together)) and for_all.requests <= 0:
            return Spare(left.prefill_tokens, 0)
        return left

    def take(self, replica: str, tokens: int) -> None:
        spare = self._left[replica]
        self._left[replica] = Spare(spare.prefill_tokens - tokens, spare.requests - 1)

    def close(self, replicas: Sequence[str]) -> None:
        for replica in replicas:
            self._left[replica] = NONE

    def is_closed(self, replicas: Sequence[str]) -> bool:
        return all(self._left.get(replica) is NONE for replica in replicas)


def _seats(places: Sequence[Spare]) -> int:
    return sum(max(0, place.requests) for place in places)
