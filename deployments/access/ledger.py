"""Keeps each tenant to its limits: by what all ingresses know, or by what this one knows while Redis is away."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from deployments.access.caller import Caller
from deployments.access.shared_window import Answer, Corrections, SharedWindow
from deployments.access.window import WINDOW_S, Standing, Used, Verdict, bucket_of, counted, decide, share, standing
from deployments.config import KeyLimits
from grammar_service.errors import CacheUnavailable

SETTLE_S = 0.1
"""Ends of requests are told together: no request waits for it, and few calls carry many."""
TELL_AGAIN_S = WINDOW_S / 4
"""How often an ingress says that its long requests are still under way."""


@dataclass(slots=True)
class _Tenant:
    """What this ingress knows. `own` is what it has admitted itself, `others` what the others had when Redis last told, and they had
    `elsewhere` requests under way then, which was at `told_at`; `corrections` are not yet told."""

    limits: KeyLimits
    running: int = 0
    own: dict[int, Used] = field(default_factory=dict)
    others: dict[int, Used] = field(default_factory=dict)
    elsewhere: int = 0
    told_at: float = -math.inf
    corrections: Corrections = field(default_factory=Corrections)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Admission:
    """One request that is under way, or that was refused; `cost` are the tokens that it was charged in `bucket`."""

    tenant: str
    bucket: int
    cost: int
    standing: Standing


class Ledger:
    """`shared` is None without Redis; `ingresses` are as many as may serve beside each other. `clock` is wall clock time, in seconds, since
    ingresses compare theirs.

    A tenant without limits costs nothing; of any other, each request is one round trip to Redis before it goes on.
    """

    def __init__(self, shared: SharedWindow | None, ingresses: int, clock: Callable[[], float] = time.time) -> None:
        self._shared = shared
        self._ingresses = ingresses
        self._clock = clock
        self._tenants: dict[str, _Tenant] = {}
        self._changed: set[str] = set()
        self._wake = asyncio.Event()
        self._settling: asyncio.Task[None] | None = None
        self._closing = False

    async def enter(self, caller: Caller, cost: int) -> Admission | None:
        """How a request of `cost` tokens stands: `leave` must follow where it was admitted. None where the caller has no limits."""
        if not any((caller.limits.concurrent_requests, caller.limits.requests_per_minute, caller.limits.tokens_per_minute)):
            return None
        tenant = self._tenants.setdefault(caller.name, _Tenant(caller.limits))
        tenant.limits = caller.limits
        # One after the other where they count what is under way: calls that overtake each other would count what is then refused.
        async with tenant.turn if caller.limits.concurrent_requests is not None else nullcontext():
            return await self._enter(caller.name, tenant, cost)

    async def _enter(self, name: str, tenant: _Tenant, cost: int) -> Admission:
        tenant.running += 1  # before anything is waited for: who tells meanwhile must count it
        admitted = False
        try:
            found = await self._entered(name, tenant, cost)
            admitted = found.standing.verdict is Verdict.ADMITTED
        finally:
            if not admitted:
                tenant.running -= 1
                self._tell_soon(name)  # what was told meanwhile counted it
        return found

    def leave(self, admission: Admission, tokens: int) -> None:
        """A request that was admitted has ended, and took so many tokens."""
        tenant = self._tenants[admission.tenant]
        tenant.running -= 1
        difference = Used(tokens=tokens - admission.cost)
        if admission.bucket in tenant.own:
            tenant.own[admission.bucket] += difference
        if self._shared is not None:
            tenant.corrections.add(admission.bucket, difference)
            self._tell_soon(admission.tenant)

    async def settle(self) -> None:
        """Tell the others what has ended since they were last told."""
        for name in list(self._changed):
            self._changed.discard(name)
            await self._tell(name, self._tenants[name])

    async def close(self) -> None:
        self._closing = True
        self._wake.set()
        if self._settling is not None:
            # Not cancelled: in the middle of a call, Redis' client may take that for the end of the call alone.
            await self._settling
        await self.settle()
        if self._shared is not None:
            await self._shared.close()

    def _tell_soon(self, name: str) -> None:
        if self._shared is not None:
            self._changed.add(name)
            self._wake.set()

    async def _entered(self, name: str, tenant: _Tenant, cost: int) -> Admission:
        now = self._clock()
        bucket = bucket_of(now)
        tenant.own = counted(tenant.own, now)
        answer = await self._asked(name, tenant, cost, bucket)
        limits = tenant.limits
        is_told = answer is not None
        if answer is None:
            limits, answer = _alone(tenant, self._ingresses, cost, now)
            if answer.verdict is Verdict.ADMITTED and self._shared is not None:
                tenant.corrections.add(bucket, Used(1, cost))
        if answer.verdict is Verdict.ADMITTED:
            tenant.own[bucket] = tenant.own.get(bucket, Used()) + Used(1, cost)
        if is_told:
            _remember(tenant, answer, now)
        return Admission(name, bucket, cost, standing(answer.verdict, limits, answer.buckets, cost, now))

    async def _asked(self, name: str, tenant: _Tenant, cost: int, bucket: int) -> Answer | None:
        """What the others know too; None where that cannot be had."""
        if self._shared is None:
            return None
        if self._settling is None:
            self._settling = asyncio.create_task(self._settle())
        corrections = counted(tenant.corrections.take(), self._clock())
        try:
            return await self._shared.enter(name, tenant.limits, tenant.running, cost, bucket, corrections)
        except CacheUnavailable:
            tenant.corrections.put_back(corrections)
            return None
        except asyncio.CancelledError:  # the client disconnected. Redis may have the corrections already: only charges are repeated
            tenant.corrections.put_back({at: used - Used() for at, used in corrections.items()})
            raise

    async def _tell(self, name: str, tenant: _Tenant) -> None:
        if self._shared is None:
            return
        corrections = counted(tenant.corrections.take(), self._clock())
        try:
            await self._shared.tell(name, tenant.limits, tenant.running, bucket_of(self._clock()), corrections)
        except CacheUnavailable:
            # Told with the next request.
            tenant.corrections.put_back(corrections)

    async def _settle(self) -> None:
        while not self._closing:
            try:
                async with asyncio.timeout(TELL_AGAIN_S):
                    await self._wake.wait()
            except TimeoutError:
                self._changed.update(name for name, tenant in self._tenants.items() if tenant.running)
            else:
                await asyncio.sleep(SETTLE_S)
            self._wake.clear()
            await self.settle()


def _remember(tenant: _Tenant, answer: Answer, now: float) -> None:
    """What was told of the others, for when Redis is away."""
    tenant.others = {number: used - tenant.own.get(number, Used()) for number, used in answer.buckets.items()}
    tenant.elsewhere, tenant.told_at = answer.elsewhere, now


def _alone(tenant: _Tenant, ingresses: int, cost: int, now: float) -> tuple[KeyLimits, Answer]:
    """By what this ingress has admitted itself, which is to fit in its share, and by what it last heard of the others. Limits that decided
    are told as well."""
    bucket, running, limits = bucket_of(now), tenant.running - 1, share(tenant.limits, ingresses)
    if verdict := decide(limits, running, tenant.own, cost, now):
        return limits, Answer(verdict, 0, dict(tenant.own))
    known = {number: tenant.own.get(number, Used()) + tenant.others.get(number, Used()) for number in {*tenant.own, *tenant.others}}
    elsewhere = tenant.elsewhere if now < tenant.told_at + TELL_AGAIN_S else 0
    if not (verdict := decide(tenant.limits, running + elsewhere, known, cost, now)):
        known[bucket] = known.get(bucket, Used()) + Used(1, cost)
    return tenant.limits, Answer(verdict, elsewhere, known)
