"""Requests of one grammar that wait together travel together, so that the engine admits them in one step.

Events in, decisions out, no clock and no I/O: `arrived` and `left` tell what happens, `tick` says who goes where, `next_tick` when to ask
again. A shell ticks once in each turn of its event loop in which something arrived or a replica got room.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
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
NoneLeft = Callable[[Set[str], bool], bool]
"""Whether a group can go nowhere where these replicas are full, by whether it has waited for `longest_wait_s`."""


@dataclass(frozen=True, slots=True)
class Release:
    """These requests, oldest first, go to this replica now."""

    replica: str
    requests: tuple[str, ...]


_GroupName = tuple[str, str | None, str]
"""Its tenant and key, and the request of one without a grammar."""
_Place = tuple[float, int, _GroupName]
"""In a line: when its oldest request came, and the group's number."""


@dataclass(slots=True)
class _Group:
    """What waits for one grammar, oldest first; `tokens` and `sequences` of all of it. Until `retry_at` it waits for room at `ranks`, if
    there are any, and is first in line there since `first_at`. Of groups that came together, the one of the lesser `number` goes first."""

    number: int
    waiting: dict[str, Dispatched] = field(default_factory=dict)
    tokens: int = 0
    sequences: int = 0
    retry_at: float = -math.inf
    first_at: float = math.inf
    ranks: Sequence[str] = ()

    @property
    def oldest(self) -> Dispatched:
        return next(iter(self.waiting.values()))

    @property
    def first_rank(self) -> str | None:
        return self.ranks[0] if self.ranks else None

    def append(self, waiting: Dispatched) -> None:
        self.waiting[waiting.name] = waiting
        self._count(waiting, 1)

    def remove(self, name: str) -> Dispatched:
        waiting = self.waiting.pop(name)
        self._count(waiting, -1)
        return waiting

    def has_waited(self, seconds: float, now: float) -> bool:
        return bool(self.waiting) and now >= self.oldest.arrived_at + seconds

    def _count(self, waiting: Dispatched, sign: int) -> None:
        self.tokens += sign * waiting.tokens
        self.sequences += sign * waiting.sequences


class Grouping:
    """`seats`, `places`, `order` and `none_left` are asked in `tick`; `released` hears of what goes before the next group is ranked.

    Tenants go in their `order`, and the groups of each oldest first. Where replicas cannot take all of a group, the rest keeps its place
    before younger ones: nobody waits for later arrivals without end. A tick looks at groups until there is `none_left` of the replicas, so
    that it costs what it releases and not what waits.
    """

    def __init__(
        self,
        places: PlacesOf,
        seats: Seats,
        released: Callable[[Release], None],
        parameters: Parameters,
        order: Order = lambda tenant: tenant,
        none_left: NoneLeft = lambda full, long: False,
    ) -> None:
        self._places = places
        self._seats = seats
        self._released = released
        self._parameters = parameters
        self._order = order
        self._none_left = none_left
        self._freed: set[str] = set()
        self.waiting_for: Counter[str] = Counter()
        """How many sequences wait for each replica, as of the last tick: their first rank, which had no room."""
        self._waiting_now: dict[str, int] = {}
        self._groups: dict[_GroupName, _Group] = {}
        self._waiting: dict[str, Dispatched] = {}
        self._lines: dict[str, list[_Place]] = {}
        self._numbers = count()
        self._new: list[_GroupName] = []
        self._due_at = math.inf

    def __len__(self) -> int:
        return len(self._waiting)

    def arrived(self, waiting: Dispatched) -> None:
        """An id that waits already is not taken twice."""
        if waiting.name in self._waiting:
            return
        self._waiting[waiting.name] = waiting
        name = _group_of(waiting)
        if is_new := name not in self._groups:
            self._groups[name] = _Group(next(self._numbers))
            self._new.append(name)
            self._due_at = -math.inf
        group = self._groups[name]
        group.append(waiting)
        self._wait_at(group.first_rank, waiting.sequences)
        if is_new:
            self._stand_in_line(name, group)

    def left(self, request: str) -> None:
        """A request was cancelled; unknown ones change nothing."""
        if (waiting := self._waiting.pop(request, None)) is not None:
            group = self._groups[_group_of(waiting)]
            group.remove(request)
            self._wait_at(group.first_rank, -waiting.sequences)
            if not group.waiting:
                del self._groups[_group_of(waiting)]

    def room_freed(self, replica: str) -> None:
        """It may have got room."""
        self._freed.add(replica)

    def ask_all(self) -> None:
        """There may be room at replicas that nobody has waited for."""
        for group in self._groups.values():
            group.retry_at = self._due_at = -math.inf

    def tick(self, now: float) -> list[Release]:
        """Who goes, in their order."""
        releases: list[Release] = []
        full: set[str] = set()
        self.waiting_for.clear()
        self.waiting_for.update(self._waiting_now)
        tenants = [tenant for tenant in self._lines if self._first(tenant) is not None]
        lines = dict.fromkeys(sorted(tenants, key=lambda tenant: self._lines[tenant][0]))
        heads, looked_at, next_at = dict[str, _GroupName](), list[_GroupName](), math.inf
        while lines:
            if self._none_left(full, False):
                lines = {each: None for each in lines if not self._none_left(full, self._has_waited_long(heads.get(each), each, now))}
                if not lines:
                    break
            tenant = min(lines, key=self._order) if len(lines) > 1 else next(iter(lines))
            if (name := heads.get(tenant) or self._first(tenant)) is None:
                del lines[tenant]
                continue
            if heads.pop(tenant, None) is None:
                heappop(self._lines[tenant])
            group = self._groups[name]
            if now >= group.retry_at or not (self._freed - full).isdisjoint(group.ranks):
                releases += self._release(group, full, now, is_shared=len(lines) > 1)
                if group.retry_at == now:
                    heads[tenant] = name  # its turn is over, but not all of it has gone
                    continue
            if group.waiting:
                full.update(group.ranks)
                looked_at.append(name)
                next_at = min(next_at, group.retry_at)
            else:
                del self._groups[name]
        self._rank_new(now)
        for name in (*looked_at, *heads.values()):
            self._stand_in_line(name, self._groups[name])
        self._lines = {tenant: line for tenant, line in self._lines.items() if line}
        self._freed.clear()
        self._due_at = min(next_at, now + self._parameters.retry_s)
        return releases

    def next_tick(self) -> float | None:
        """When to ask again if nothing happens before; None when nobody waits."""
        return self._due_at if self._groups else None

    def _stand_in_line(self, name: _GroupName, group: _Group) -> None:
        heappush(self._lines.setdefault(name[0], []), (group.oldest.arrived_at, group.number, name))

    def _first(self, tenant: str) -> _GroupName | None:
        """The group whose oldest request came first. Places of groups that have gone, or whose oldest request has, are put right here."""
        line = self._lines[tenant]
        while line:
            arrived_at, number, name = line[0]
            group = self._groups.get(name)
            is_it = group is not None and group.number == number
            if group is not None and is_it and group.oldest.arrived_at == arrived_at:
                return name
            heappop(line)
            if group is not None and is_it:
                self._stand_in_line(name, group)
        return None

    def _has_waited_long(self, head: _GroupName | None, tenant: str, now: float) -> bool:
        name = head or self._first(tenant)
        return name is not None and self._groups[name].has_waited(self._parameters.longest_wait_s, now)

    def _wait_at(self, replica: str | None, sequences: int) -> None:
        """So many sequences more wait for it."""
        if replica is None or not sequences:
            return
        left = self._waiting_now.get(replica, 0) + sequences
        if left:
            self._waiting_now[replica] = left
        else:
            del self._waiting_now[replica]

    def _rank_new(self, now: float) -> None:
        """Also where nothing can go: others are to know how many wait for whom."""
        for name in self._new:
            if (group := self._groups.get(name)) is not None and not group.ranks:
                self._ranked(group, now)
        self._new.clear()

    def _ranked(self, group: _Group, now: float) -> Places:
        # One request cannot be divided, however long it is.
        tokens = group.tokens if len(group.waiting) > 1 else 0
        places = self._places(group.oldest, tokens, group.has_waited(self._parameters.patience_s, now))
        self._wait_at(group.first_rank, -group.sequences)
        group.ranks = places.replicas
        self._wait_at(group.first_rank, group.sequences)
        return places

    def _release(self, group: _Group, full: set[str], now: float, *, is_shared: bool) -> list[Release]:
        numbers, places = self._parameters, self._ranked(group, now)
        group.first_at = math.inf if full.issuperset(group.ranks) else min(group.first_at, now)
        held = now < group.first_at + numbers.hold_s
        turn = places.tokens if is_shared else math.inf
        sent, is_over = self._fill(group, places, full, group.sequences if held else 1, turn)
        if sent and held:
            group.first_at = now
        while places.silent and group.ranks and group.has_waited(numbers.longest_wait_s, now):
            sent.setdefault(group.ranks[0], []).append(self._take(group).name)
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
        oldest = group.oldest
        free = {one: seats for one in places.replicas if one not in full and (seats := self._seats(one, together, oldest)) > 0}
        tokens, sent = dict.fromkeys(free, 0), dict[str, list[str]]()
        while free and group.waiting and (not sent or sum(tokens.values()) < turn):
            replica = min(free, key=lambda one: tokens[one] if tokens[one] >= places.tokens else -1)
            if replica in sent and group.oldest.sequences > free[replica]:
                del free[replica]
                continue
            waiting = self._take(group)
            sent.setdefault(replica, []).append(waiting.name)
            tokens[replica] += waiting.tokens
            # One request cannot be divided either: what has no seat waits in the engine's queue, and counts.
            free[replica] -= waiting.sequences
            if free[replica] <= 0:
                del free[replica]
        return sent, bool(free)

    def _take(self, group: _Group) -> Dispatched:
        waiting = group.remove(group.oldest.name)
        self._wait_at(group.first_rank, -waiting.sequences)
        return waiting


def _group_of(waiting: Dispatched) -> _GroupName:
    """Who has no grammar is alone."""
    return (waiting.tenant, waiting.key, "" if waiting.key is not None else waiting.name)
