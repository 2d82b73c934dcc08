"""Turns among tenants for seats, by the tokens that they have used: a virtual token counter (Sheng et al., "Fairness in Serving Large
Language Models", OSDI 2024, section 4), with weights, groups and seats that are kept for light tenants. Events in, decisions out, no clock
and no I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FairParameters:
    """Tokens are weighed as they cost an engine; times are in seconds."""

    prompt: float = 1.0
    sampled: float = 2.0
    """The paper's weights: a sampled token takes a step's share of its own."""
    forced: float = 1.0
    """They are computed as a prompt is."""
    quantum: float = 2048.0
    """A group goes together until its turn has cost so much."""
    kept: float = 1 / 8
    """Of the seats: for tenants that hold no more than that, while there are such."""
    present_s: float = 10.0
    """A tenant is there for so long after it was last seen."""
    patience_s: float = 1.0
    """A request that needs several seats is passed over for so long; then seats are saved up for it."""


@dataclass(frozen=True, slots=True)
class Turned:
    """A request: `tokens` are to be prefilled, `sequences` are the seats that it takes; `key` is its grammar's, None where it has none."""

    name: str
    tenant: str
    key: str | None = None
    tokens: int = 0
    sequences: int = 1


@dataclass(slots=True)
class _Tenant:
    """`counter` is what it has used, in weighted tokens by its weight; `waiting` are its requests, oldest first, with their times of
    arrival, and `groups` those that have a grammar, by it."""

    weight: float = 1.0
    counter: float = 0.0
    waiting: dict[str, tuple[Turned, float]] = field(default_factory=dict)
    groups: dict[str, dict[str, Turned]] = field(default_factory=dict)
    held: int = 0
    seen_at: float = -math.inf

    def add(self, request: Turned, now: float) -> None:
        self.waiting[request.name] = (request, now)
        if request.key is not None:
            self.groups.setdefault(request.key, {})[request.name] = request

    def remove(self, name: str) -> None:
        request, _ = self.waiting.pop(name)
        if request.key is not None:
            group = self.groups[request.key]
            del group[name]
            if not group:
                del self.groups[request.key]


class FairTurns:
    """`seats` are those of all engines together. A request waits from `arrived` until `turn` names it, and holds its seats until `ended`;
    meanwhile `computed` tells what it has cost beyond its prompt.

    Of tenants that wait, the one that has used least by its weight goes next; while two wait, what they get by their weights differs by no
    more than two turns and what runs. Who has not waited before begins where the others are, so that nobody saves turns up.
    """

    def __init__(self, seats: int, parameters: FairParameters | None = None) -> None:
        self._seats = seats
        self._parameters = parameters or FairParameters()
        self._kept = math.floor(seats * self._parameters.kept)
        self._tenants: dict[str, _Tenant] = {}
        self._where: dict[str, str] = {}
        self._running: dict[str, Turned] = {}
        self._free = seats
        self._last = _Tenant()

    def __len__(self) -> int:
        """Requests that wait."""
        return sum(len(tenant.waiting) for tenant in self._tenants.values())

    @property
    def free(self) -> int:
        return self._free

    def used(self, tenant: str) -> float:
        """Weighted tokens by the tenant's weight; only differences say anything."""
        return self._tenants[tenant].counter if tenant in self._tenants else 0.0

    def arrived(self, request: Turned, now: float, weight: float = 1.0) -> None:
        """A name that is known is not taken twice."""
        if request.name in self._where or request.name in self._running:
            return
        tenant = self._tenants.setdefault(request.tenant, _Tenant())
        tenant.weight, tenant.seen_at = weight, now
        if not tenant.waiting:
            # The paper's lift (algorithm 2): to the least of those that wait, or to the last one that did.
            tenant.counter = max(tenant.counter, min((other.counter for other in self._waiting()), default=self._last.counter))
        tenant.add(request, now)
        self._where[request.name] = request.tenant

    def computed(self, name: str, sampled: int = 0, forced: int = 0) -> None:
        """A request that runs has been given so many tokens more."""
        if (request := self._running.get(name)) is not None:
            self._charge(self._tenants[request.tenant], sampled * self._parameters.sampled + forced * self._parameters.forced)

    def ended(self, name: str, now: float) -> None:
        """It waits or runs no more; unknown ones change nothing."""
        if (owner := self._where.pop(name, None)) is not None:
            self._tenants[owner].remove(name)
        elif (request := self._running.pop(name, None)) is not None:
            tenant = self._tenants[request.tenant]
            tenant.held -= self._needs(request)
            tenant.seen_at = now
            self._free += self._needs(request)

    def turn(self, now: float) -> list[Turned]:
        """Who goes now, in their order."""
        gone: list[Turned] = []
        passed: set[int] = set()
        while self._free > 0:
            tenant = self._next(passed, now)
            if tenant is None:
                break
            request, since = next(iter(tenant.waiting.values()))
            if self._needs(request) > self._free:
                if now >= since + self._parameters.patience_s:
                    break
                passed.add(id(tenant))
                continue
            gone += self._group(tenant, request, now)
        self._forget(now)
        return gone

    def _next(self, passed: set[int], now: float) -> _Tenant | None:
        keeps = self._keeps(now)
        able = [tenant for tenant in self._waiting() if id(tenant) not in passed and not (keeps and tenant.held >= self._kept)]
        return min(able, key=lambda tenant: tenant.counter, default=None)

    def _keeps(self, now: float) -> bool:
        """The last seats are not for who holds many, while anybody may come who does not. Where all that are there wait, nothing is kept:
        it would not be for light tenants, but would take turns from those who have used least."""
        return self._free <= self._kept and any(self._may_come(tenant, now) for tenant in self._tenants.values())

    def _may_come(self, tenant: _Tenant, now: float) -> bool:
        return not tenant.waiting and tenant.held < self._kept and (tenant.held > 0 or now < tenant.seen_at + self._parameters.present_s)

    def _waiting(self) -> Iterator[_Tenant]:
        return (tenant for tenant in self._tenants.values() if tenant.waiting)

    def _group(self, tenant: _Tenant, first: Turned, now: float) -> list[Turned]:
        """The oldest request, and those of its grammar that its turn has room for."""
        self._go(tenant, first)
        gone, cost = [first], self._prompt_cost(first)
        while first.key in tenant.groups:
            request = next(iter(tenant.groups[first.key].values()))
            cost += self._prompt_cost(request)
            is_full = self._needs(request) > self._free or (tenant.held >= self._kept and self._keeps(now))
            if cost > self._parameters.quantum or is_full:
                break
            self._go(tenant, request)
            gone.append(request)
        return gone

    def _go(self, tenant: _Tenant, request: Turned) -> None:
        tenant.remove(request.name)
        del self._where[request.name]
        self._running[request.name] = request
        self._free -= self._needs(request)
        tenant.held += self._needs(request)
        self._charge(tenant, self._prompt_cost(request))
        if not tenant.waiting:
            self._last = tenant

    def _charge(self, tenant: _Tenant, cost: float) -> None:
        tenant.counter += cost / tenant.weight

    def _prompt_cost(self, request: Turned) -> float:
        return request.tokens * self._parameters.prompt

    def _needs(self, request: Turned) -> int:
        """More seats than those that nobody keeps would never be free."""
        return max(1, min(request.sequences, self._seats - self._kept))

    def _forget(self, now: float) -> None:
        """Tenants that are not there any more: should they come again, they begin where the others are."""
        gone = [
            name
            for name, tenant in self._tenants.items()
            if not tenant.waiting and not tenant.held and now >= tenant.seen_at + self._parameters.present_s
        ]
        for name in gone:
            del self._tenants[name]
