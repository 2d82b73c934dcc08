"""Whose turn it is: a bounded queue for several slots that no tenant can fill or hold for itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from grammar_service.errors import PoolBusy

S = TypeVar("S")


@dataclass(slots=True)
class _Tenant(Generic[S]):
    """`used_s` is the time that its jobs have held slots, counted from where the least served one stood when it came."""

    name: str
    used_s: float
    holds: int = 0
    waiting: deque[asyncio.Future[S]] = field(default_factory=deque)


class FairTurns(Generic[S]):
    """Hands out slots. The next one goes to the waiting tenant that has used the least time (start-time fair queueing with a
    weight of one each), if it can be one that it had before; the last free slot is kept from whoever holds all the others. When the queue
    is full, the tenant with the longest one loses its newest job."""

    def __init__(self, slots: Sequence[S], max_waiting: int, clock: Callable[[], float]) -> None:
        self._free = list(slots)
        self._most = max(1, len(slots) - 1)
        self._max_waiting = max_waiting
        self._clock = clock
        self._tenants: dict[str, _Tenant[S]] = {}
        self._last: dict[int, str] = {}
        """Who had a slot last."""

    @property
    def waiting(self) -> int:
        return sum(len(tenant.waiting) for tenant in self._tenants.values())

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[S]:
        """A slot for the length of the block. Raises PoolBusy: the queue is full of the others' jobs, or of this tenant's."""
        tenant = self._joined(name)
        try:
            slot = await self._granted(tenant)
        finally:
            self._forget(name)
        started = self._clock()
        try:
            yield slot
        finally:
            tenant.used_s += self._clock() - started
            tenant.holds -= 1
            self._free.append(slot)
            self._grant()
            self._forget(name)

    def _joined(self, name: str) -> _Tenant[S]:
        if name not in self._tenants:
            # A newcomer has no credit for the time before it came.
            least = min((tenant.used_s for tenant in self._tenants.values()), default=0.0)
            self._tenants[name] = _Tenant(name, least)
        return self._tenants[name]

    def _forget(self, name: str) -> None:
        tenant = self._tenants.get(name)
        if tenant is not None and not tenant.holds and not tenant.waiting:
            del self._tenants[name]

    async def _granted(self, tenant: _Tenant[S]) -> S:
        place: asyncio.Future[S] = asyncio.get_running_loop().create_future()
        tenant.waiting.append(place)
        self._grant()
        if self.waiting > self._max_waiting:
            longest = max(self._tenants.values(), key=lambda each: (len(each.waiting), each is tenant))
            newest = longest.waiting.pop()
            if not newest.done():
                newest.set_exception(PoolBusy(f"{self._max_waiting} grammars wait to be compiled already"))
            del newest  # as below
        try:
            return await place
        except asyncio.CancelledError:
            self._give_back(tenant, place)
            raise
        finally:
            del place  # breaks a reference cycle with its error's traceback

    def _give_back(self, tenant: _Tenant[S], place: asyncio.Future[S]) -> None:
        """The job was cancelled while it waited, or just as it was given a slot."""
        if place in tenant.waiting:
            tenant.waiting.remove(place)
        elif place.done() and not place.cancelled() and place.exception() is None:
            tenant.holds -= 1
            self._free.append(place.result())
            self._grant()

    def _grant(self) -> None:
        while self._free:
            ready = [tenant for tenant in self._tenants.values() if _waits(tenant) and tenant.holds < self._most]
            if not ready:
                return
            tenant = min(ready, key=lambda each: each.used_s)
            tenant.holds += 1
            tenant.waiting.popleft().set_result(self._taken_by(tenant.name))

    def _taken_by(self, name: str) -> S:
        """The free slot that was this tenant's last, or nobody's, or any."""
        slot = self._free.pop(min(reversed(range(len(self._free))), key=lambda place: self._strangeness(self._free[place], name)))
        self._last[id(slot)] = name
        return slot

    def _strangeness(self, slot: S, name: str) -> int:
        last = self._last.get(id(slot))
        return 0 if last == name else 1 if last is None else 2


def _waits(tenant: _Tenant[S]) -> bool:
    """A job that is cancelled stays in the queue until its task runs again."""
    while tenant.waiting and tenant.waiting[0].done():
        tenant.waiting.popleft()
    return bool(tenant.waiting)
