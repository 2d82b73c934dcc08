"""Requests of one grammar that wait together travel together, so that the engine admits them in one step.

Events in, decisions out, no clock and no I/O: `arrived` and `left` tell what happens, `tick` says who goes where, `next_tick` when to ask
again. A shell ticks once in each turn of its event loop in which something arrived or a replica got room.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from router.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A request as the policy sees it: `name` is its own and nobody else's; `key` None is no grammar; `tokens` are to be prefilled, prompt
    and forced text together; prompts of one `prefix` begin alike. It takes as many seats as it has `sequences`, of what its `tenant` has
    by its weight, and waits since `arrived_at`, in seconds of the clock of `tick`, which does not run backwards."""

    name: str
    key: str | None = None
    tokens: int = 0
    prefix: str | None = None
    sequences: int = 1
    tenant: str = ""
    weight: float = 1.0
    arrived_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Places:
    """Where a group may go: replicas, the best first, each of which is given so many prefill tokens before the next one is used; a tenant's
    turn is as long, where others wait. `silent`: the best one has answered nothing for long."""

    replicas: Sequence[str]
    tokens: float
    silent: bool = True


PlacesOf = Callable[[Dispatched, int, bool], Places]
"""Of a group, by its oldest request and its prefill tokens, and whether that request has waited for `patience_s`."""
Seats = Callable[[str, int, Dispatched], float]
"""How many sequences of a tenant a replica can take; none, where so many wait together and `kept_free` of its seats are not free."""
Order = Callable[[str], Any]
"""Of tenants: the least goes next."""


@dataclass(frozen=True, slots=True)
class Release:
    """These requests, oldest first, go to this replica now."""

    replica: str
    requests: tuple[str, ...]


_GroupName = tuple[str, str | None, str]
"""Its tenant and key, and the request of one without a grammar."""


@dataclass(slots=True)
class _Group:
    """What waits for one grammar, oldest first; `tokens` and `sequences` of all of it. Until `retry_at` it waits for room at `ranks`, if
    there are any, and is first in line there since `first_at`."""

    waiting: deque[Dispatched] = field(default_factory=deque)
    tokens: int = 0
    sequences: int = 0
    retry_at: float = -math.inf
    first_at: float = math.inf
    ranks: Sequence[str] = ()

    def append(self, waiting: Dispatched) -> None:
        self.waiting.append(waiting)
        self._count(waiting, 1)

    def take(self) -> Dispatched:
        waiting = self.waiting.popleft()
        self._count(waiting, -1)
        return waiting

    def remove(self, waiting: Dispatched) -> None:
        self.waiting.remove(waiting)
        self._count(waiting, -1)

    def has_waited(self, seconds: float, now: float) -> bool:
        return bool(self.waiting) and now >= self.waiting[0].arrived_at + seconds

    def _count(self, waiting: Dispatched, sign: int) -> None:
        self.tokens += sign * waiting.tokens
        self.sequences += sign * waiting.sequences


class Grouping:
    """`seats`, `places` and `order` are asked in `tick`; `released` hears of what goes before the next group is ranked.

    Tenants go in their `order`, and the groups of each oldest first. Where replicas cannot take all of a group, the rest keeps its place
    before younger ones: nobody waits for later arrivals without end.
    """

    def __init__(
        self,
        places: PlacesOf,
        seats: Seats,
        released: Callable[[Release], None],
        parameters: Parameters,
        order: Order = lambda tenant: tenant,
    ) -> None:
        self._places = places
        self._seats = seats
        self._released = released
        self._parameters = parameters
        self._order = order
        self._freed: set[str] = set()
        self.waiting_for: Counter[str] = Counter()
        """How many sequences wait for each replica, as of the last tick: their first rank, which had no room."""
        self._groups: dict[_GroupName, _Group] = {}
        self._waiting: dict[str, Dispatched] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def arrived(self, waiting: Dispatched) -> None:
        """An id that waits already is not taken twice."""
        if waiting.name not in self._waiting:
            self._waiting[waiting.name] = waiting
            self._groups.setdefault(_group_of(waiting), _Group()).append(waiting)

    def left(self, request: str) -> None:
        """A request was cancelled; unknown ones change nothing."""
        if (waiting := self._waiting.pop(request, None)) is not None:
            group = self._groups[_group_of(waiting)]
            group.remove(waiting)
            if not group.waiting:
                del self._groups[_group_of(waiting)]

    def room_freed(self, replica: str) -> None:
        """It may have got room."""
        self._freed.add(replica)

    def ask_all(self) -> None:
        """There may be room at replicas that nobody has waited for."""
        for group in self._groups.values():
            group.retry_at = -math.inf

    def tick(self, now: float) -> list[Release]:
        """Who goes, in their order."""
        releases: list[Release] = []
        full: set[str] = set()
        self.waiting_for.clear()
        for group in self._groups.values():
            if group.ranks:
                self.waiting_for[group.ranks[0]] += group.sequences
        lines = self._lines()
        while lines:
            line = lines[tenant := min(lines, key=self._order) if len(lines) > 1 else next(iter(lines))]
            group = self._groups[line[0]]
            if now >= group.retry_at or not (self._freed - full).isdisjoint(group.ranks):
                releases += self._release(group, full, now, is_shared=len(lines) > 1)
                if group.retry_at == now:
                    continue  # its turn is over, but not all of it has gone
            if group.waiting:
                full.update(group.ranks)
            else:
                del self._groups[line[0]]
            line.popleft()
            if not line:
                del lines[tenant]
        self._freed.clear()
        return releases

    def _lines(self) -> dict[str, deque[_GroupName]]:
        """The groups of each tenant, those of the oldest requests first."""
        lines: dict[str, deque[_GroupName]] = {}
        for name, _ in sorted(self._groups.items(), key=lambda item: item[1].waiting[0].arrived_at):
            lines.setdefault(name[0], deque()).append(name)
        return lines

    def next_tick(self) -> float | None:
        """When to ask again if nothing happens before; None when nobody waits."""
        return min((group.retry_at for group in self._groups.values()), default=None)

    def _release(self, group: _Group, full: set[str], now: float, *, is_shared: bool) -> list[Release]:
        numbers, oldest = self._parameters, group.waiting[0]
        # One request cannot be divided, however long it is.
        tokens = group.tokens if len(group.waiting) > 1 else 0
        places = self._places(oldest, tokens, group.has_waited(numbers.patience_s, now))
        group.ranks = places.replicas
        group.first_at = math.inf if full.issuperset(group.ranks) else min(group.first_at, now)
        held = now < group.first_at + numbers.hold_s
        turn = places.tokens if is_shared else math.inf
        sent, is_over = self._fill(group, places, full, group.sequences if held else 1, turn)
        if sent and held:
            group.first_at = now
        while places.silent and group.ranks and group.has_waited(numbers.longest_wait_s, now):
            sent.setdefault(group.ranks[0], []).append(group.take().name)
        group.retry_at = now if is_over and group.waiting else now + numbers.retry_s
        releases = [Release(replica, tuple(requests)) for replica, requests in sent.items()]
        for release in releases:
            for request in release.requests:
                del self._waiting[request]
            self._released(release)
        return releases

    def _fill(self, group: _Group, places: Places, full: set[str], together: int, turn: float) -> tuple[dict[str, list[str]], bool]:
        """Who goes where, and whether the tokens of a `turn` ended it, not the seats. When each place has been given its tokens, who has
        been given least is next."""
        oldest = group.waiting[0]
        free = {one: seats for one in places.replicas if one not in full and (seats := self._seats(one, together, oldest)) > 0}
        tokens, sent = dict.fromkeys(free, 0), dict[str, list[str]]()
        while free and group.waiting and (not sent or sum(tokens.values()) < turn):
            replica = min(free, key=lambda one: tokens[one] if tokens[one] >= places.tokens else -1)
            if replica in sent and group.waiting[0].sequences > free[replica]:
                del free[replica]
                continue
            waiting = group.take()
            sent.setdefault(replica, []).append(waiting.name)
            tokens[replica] += waiting.tokens
            # One request cannot be divided either: what has no seat waits in the engine's queue, and counts.
            free[replica] -= waiting.sequences
            if free[replica] <= 0:
                del free[replica]
        return sent, bool(free)


def _group_of(waiting: Dispatched) -> _GroupName:
    """Who has no grammar is alone."""
    return (waiting.tenant, waiting.key, "" if waiting.key is not None else waiting.name)
