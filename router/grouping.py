"""Requests of one grammar that wait together travel together, so that the engine admits them in one step.

Events in, decisions out, no clock and no I/O: `arrived` and `left` tell what happens, `tick` says who goes where, `next_tick` when to ask
again. A shell ticks once in each turn of its event loop in which something arrived or a replica got room.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from router.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request; `key` is its grammar's, None where it has none; `arrived_at` in seconds of the clock of `tick`, which does not run
    backwards. Prompts of one `prefix` begin alike. It takes as many seats as it has `sequences`."""

    request: str
    key: str | None
    prefill_tokens: int
    arrived_at: float
    prefix: str | None = None
    sequences: int = 1


@dataclass(frozen=True, slots=True)
class Places:
    """Where a group may go: replicas, the best first, each of which is given so many prefill tokens before the next one is used."""

    replicas: Sequence[str]
    tokens: float


PlacesOf = Callable[[Waiting, int, bool], Places]
"""Of a group, by its oldest request and its prefill tokens, and whether that request has waited for `patience_s`."""
Seats = Callable[[str, int], float]
"""How many sequences a replica can take; none, where so many wait together and `kept_free` of its seats are not free."""


@dataclass(frozen=True, slots=True)
class Release:
    """These requests, oldest first, go to this replica now."""

    replica: str
    requests: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    """What waits for one grammar, oldest first; `tokens` and `sequences` of all of it. Until `retry_at` it waits for room at `ranks`, if
    there are any, and is first in line there since `first_at`."""

    waiting: deque[Waiting] = field(default_factory=deque)
    tokens: int = 0
    sequences: int = 0
    retry_at: float = -math.inf
    first_at: float = math.inf
    ranks: Sequence[str] = ()

    def append(self, waiting: Waiting) -> None:
        self.waiting.append(waiting)
        self._count(waiting, 1)

    def take(self) -> Waiting:
        waiting = self.waiting.popleft()
        self._count(waiting, -1)
        return waiting

    def remove(self, waiting: Waiting) -> None:
        self.waiting.remove(waiting)
        self._count(waiting, -1)

    def has_waited(self, seconds: float, now: float) -> bool:
        return bool(self.waiting) and now >= self.waiting[0].arrived_at + seconds

    def _count(self, waiting: Waiting, sign: int) -> None:
        self.tokens += sign * waiting.prefill_tokens
        self.sequences += sign * waiting.sequences


class Grouping:
    """`seats` is asked in `tick`, as `places` is; `released` hears of what goes before the next group is ranked.

    Groups go oldest first, and where replicas cannot take all of a group, the rest keeps its place before younger ones: nobody waits for
    later arrivals without end.
    """

    def __init__(self, places: PlacesOf, seats: Seats, released: Callable[[Release], None], parameters: Parameters) -> None:
        self._places = places
        self._seats = seats
        self._released = released
        self._parameters = parameters
        self._roomier: set[str] = set()
        self.waiting_for: Counter[str] = Counter()
        """How many sequences wait for each replica, as of the last tick: their first rank, which had no room."""
        self._groups: dict[tuple[str | None, str], _Group] = {}
        self._waiting: dict[str, Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def arrived(self, waiting: Waiting) -> None:
        """An id that waits already is not taken twice."""
        if waiting.request not in self._waiting:
            self._waiting[waiting.request] = waiting
            self._groups.setdefault(_group_of(waiting), _Group()).append(waiting)

    def left(self, request: str) -> None:
        """A request was cancelled; unknown ones change nothing."""
        if (waiting := self._waiting.pop(request, None)) is not None:
            group = self._groups[_group_of(waiting)]
            group.remove(waiting)
            if not group.waiting:
                del self._groups[_group_of(waiting)]

    def roomier(self, replica: str) -> None:
        """It may have got room."""
        self._roomier.add(replica)

    def ask_all(self) -> None:
        """There may be room at replicas that nobody has waited for."""
        for group in self._groups.values():
            group.retry_at = -math.inf

    def tick(self, now: float) -> list[Release]:
        """Who goes, groups of the oldest requests first."""
        releases: list[Release] = []
        full: set[str] = set()
        self.waiting_for.clear()
        for group in self._groups.values():
            if group.ranks:
                self.waiting_for[group.ranks[0]] += group.sequences
        for name, group in sorted(self._groups.items(), key=lambda item: item[1].waiting[0].arrived_at):
            if now >= group.retry_at or not (self._roomier - full).isdisjoint(group.ranks):
                releases += self._release(group, full, now)
            if group.waiting:
                full.update(group.ranks)
            else:
                del self._groups[name]
        self._roomier.clear()
        return releases

    def next_tick(self) -> float | None:
        """When to ask again if nothing happens before; None when nobody waits."""
        return min((group.retry_at for group in self._groups.values()), default=None)

    def _release(self, group: _Group, full: set[str], now: float) -> list[Release]:
        numbers, oldest = self._parameters, group.waiting[0]
        # One request cannot be divided, however long it is.
        tokens = group.tokens if len(group.waiting) > 1 else 0
        places = self._places(oldest, tokens, group.has_waited(numbers.patience_s, now))
        group.ranks = places.replicas
        group.first_at = math.inf if full.issuperset(group.ranks) else min(group.first_at, now)
        held = now < group.first_at + numbers.hold_s
        sent = self._fill(group, places, full, group.sequences if held else 1)
        if sent and held:
            group.first_at = now
        while group.ranks and group.has_waited(numbers.longest_wait_s, now):
            sent.setdefault(group.ranks[0], []).append(group.take().request)
        group.retry_at = now + numbers.retry_s
        releases = [Release(replica, tuple(requests)) for replica, requests in sent.items()]
        for release in releases:
            for request in release.requests:
                del self._waiting[request]
            self._released(release)
        return releases

    def _fill(self, group: _Group, places: Places, full: set[str], together: int) -> dict[str, list[str]]:
        """When each place has been given its tokens, whoever has been given least is next."""
        free = {replica: seats for replica in places.replicas if replica not in full and (seats := self._seats(replica, together)) > 0}
        tokens, sent = dict.fromkeys(free, 0), dict[str, list[str]]()
        while free and group.waiting:
            replica = min(free, key=lambda one: tokens[one] if tokens[one] >= places.tokens else -1)
            waiting = group.take()
            sent.setdefault(replica, []).append(waiting.request)
            tokens[replica] += waiting.prefill_tokens
            # One request cannot be divided either: what has no seat waits in the engine's queue, and counts.
            free[replica] -= waiting.sequences
            if free[replica] <= 0:
                del free[replica]
        return sent


def _group_of(waiting: Waiting) -> tuple[str | None, str]:
    """Who has no grammar is alone."""
    return (waiting.key, "") if waiting.key is not None else (None, waiting.request)
