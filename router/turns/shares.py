"""Whose turn it is, by the tokens that tenants have used: a virtual token counter (Sheng et al., "Fairness in Serving Large Language
Models", OSDI 2024, section 4) with weights, and with seats that are kept for light tenants. Events in, decisions out, no clock, no I/O.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PROMPT, SAMPLED, FORCED = 1.0, 2.0, 1.0
"""What tokens count: the paper's weights. A sampled token takes a step's share of its own; forced ones are computed as a prompt is."""
KEPT = 1 / 8
"""Of the seats: for tenants that ask for no more than that. Without them, each request of theirs waits until one of a flood's ends."""
PRESENT_S = 10.0
"""For so long after it was last seen a tenant may come again; then nothing is kept for it any more."""


@dataclass(slots=True)
class _Tenant:
    """`counter` is what it has used, in weighted tokens by its weight; `held` are its seats, `asked` those that its requests wait for."""

    weight: float = 1.0
    counter: float = 0.0
    asked: int = 0
    held: int = 0
    seen_at: float = -math.inf

    def is_there(self, now: float) -> bool:
        return self.asked > 0 or self.held > 0 or now < self.seen_at + PRESENT_S


def seats_for_one(seats: int) -> int:
    """The most that one request has of them: all that are not kept."""
    return seats - math.floor(seats * KEPT)


class Shares:
    """`seats` are those of all engines together; infinite: nobody knows them, and none are kept. Times are in seconds of one clock that
    does not run backwards.

    Of tenants that wait, who has used least by its weight goes next. Who has not waited before begins where the others are, so that nobody
    saves turns up (the paper's lift, algorithm 2). Light tenants, which ask for no more than the kept seats, go first there. Who is alone
    has everything.
    """

    def __init__(self, seats: float = math.inf) -> None:
        self.seats = seats
        self._tenants: dict[str, _Tenant] = {}
        self._last = _Tenant()

    def __len__(self) -> int:
        """Tenants that are there."""
        return len(self._tenants)

    @property
    def for_light(self) -> int:
        """Seats that are kept at most."""
        return 0 if math.isinf(self.seats) else math.floor(self.seats * KEPT)

    def used(self, tenant: str) -> float:
        """Weighted tokens by the tenant's weight; only differences say anything."""
        return self._tenants[tenant].counter if tenant in self._tenants else 0.0

    def came(self, tenant: str, sequences: int, weight: float, now: float) -> None:
        """A request waits for so many seats."""
        found = self._tenants.get(tenant)
        if found is None:
            self._forget(now)
            found = self._tenants[tenant] = _Tenant()
        if not found.asked:
            waiting = [other.counter for other in self._tenants.values() if other.asked] if len(self._tenants) > 1 else ()
            found.counter = max(found.counter, min(waiting, default=self._last.counter))
        found.weight, found.seen_at = weight, now
        found.asked += sequences

    def left(self, tenant: str, sequences: int, now: float) -> None:
        """One that waited has gone, without having had seats."""
        found = self._tenants[tenant]
        found.asked -= sequences
        found.seen_at = now

    def seated(self, tenant: str, sequences: int, prompt_tokens: int) -> None:
        """One that waited has its seats."""
        found = self._last = self._tenants[tenant]
        found.asked -= sequences
        found.held += sequences
        found.counter += PROMPT * prompt_tokens / found.weight

    def charge(self, tenant: str, tokens: float) -> None:
        """So many weighted tokens more; below 0 where an estimate was too high. Who is not there any more is not charged."""
        if (found := self._tenants.get(tenant)) is not None:
            found.counter += tokens / found.weight

    def ended(self, tenant: str, sequences: int, now: float) -> None:
        """One has given its seats back."""
        found = self._tenants[tenant]
        found.held -= sequences
        found.seen_at = now

    def kept(self, now: float) -> int:
        """Seats that are to be left to light tenants, beside those that they have."""
        if len(self._tenants) < 2 or not (most := self.for_light):
            return 0
        light = [one.held for one in self._tenants.values() if one.held + one.asked <= most and one.is_there(now)]
        return max(0, most - sum(light)) if light else 0

    def may_take(self, tenant: str, sequences: int, kept: int) -> bool:
        """Whether it may have them of the seats that are `kept`."""
        found = self._tenants[tenant]
        return sequences <= kept and found.held + found.asked <= self.for_light

    def order(self, tenant: str, kept: int) -> tuple[bool, float, float]:
        """Of tenants that wait, the least goes next; of those that have used as much, who holds less."""
        found = self._tenants[tenant]
        return not (kept and self.may_take(tenant, 1, kept)), found.counter, found.held / found.weight

    def _forget(self, now: float) -> None:
        for name in [name for name, one in self._tenants.items() if not one.is_there(now)]:
            del self._tenants[name]
