"""Whose turn it is, by the tokens that tenants have used: a virtual token counter (Sheng et al., "Fairness in Serving Large Language
Models", OSDI 2024, section 4) with weights, and with seats that are kept for light tenants. Events in, decisions out, no clock, no I/O.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

PROMPT, SAMPLED, FORCED = 1.0, 2.0, 1.0
"""What tokens count: the paper's weights. A sampled token takes a step's share of its own; forced ones are computed as a prompt is."""
KEPT = 1 / 8
"""Of the seats: for tenants that ask for no more than that. Without them, each request of theirs waits until one of a flood's ends."""
PRESENT_S = 10.0
"""For so long after it was last seen a tenant may come again; then nothing is kept for it any more."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Of a tenant at other ingresses, or at one: the seats that it holds there, and those that its requests wait for."""

    weight: float = 1.0
    held: int = 0
    asked: int = 0

    def __add__(self, other: Presence) -> Presence:
        return Presence(self.weight, self.held + other.held, self.asked + other.asked)


NOWHERE = Presence()


@dataclass(slots=True)
class _Tenant:
    """`counter` is what it has used, in weighted tokens by its weight; `held` are its seats, `asked` those that its requests wait for, here
    where it was `seen_at`; what it has `elsewhere` was `heard_at`."""

    weight: float = 1.0
    counter: float = 0.0
    asked: int = 0
    held: int = 0
    seen_at: float = -math.inf
    elsewhere: Presence = NOWHERE
    heard_at: float = -math.inf

    @property
    def all_held(self) -> int:
        return self.held + self.elsewhere.held

    @property
    def wanted(self) -> int:
        """Seats that it has or waits for, wherever."""
        return self.held + self.asked + self.elsewhere.held + self.elsewhere.asked

    def is_there(self, now: float) -> bool:
        return self.wanted > 0 or now < max(self.seen_at, self.heard_at) + PRESENT_S


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
        self._waits_elsewhere = False

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
        light = [one.all_held for one in self._tenants.values() if one.wanted <= most and one.is_there(now)]
        return max(0, most - sum(light)) if light else 0

    def may_take(self, tenant: str, sequences: int, kept: int) -> bool:
        """Whether it may have them of the seats that are `kept`."""
        found = self._tenants[tenant]
        return sequences <= kept and found.wanted <= self.for_light

    def order(self, tenant: str, kept: int) -> tuple[bool, float, float]:
        """Of tenants that wait, the least goes next; of those that have used as much, who holds less."""
        found = self._tenants[tenant]
        return not (kept and self.may_take(tenant, 1, kept)), found.counter, found.held / found.weight

    def present(self, now: float) -> dict[str, Presence]:
        """The tenants that are here."""
        here = self._tenants.items()
        return {
            name: Presence(one.weight, one.held, one.asked) for name, one in here if one.held or one.asked or now < one.seen_at + PRESENT_S
        }

    def heard(self, elsewhere: Mapping[str, Presence], now: float) -> None:
        """These are at other ingresses, and nobody else is."""
        for one in self._tenants.values():
            one.elsewhere = NOWHERE
        for name, there in elsewhere.items():
            found = self._tenants.setdefault(name, _Tenant(there.weight))
            found.elsewhere, found.heard_at = there, now
        self._waits_elsewhere = any(there.asked for there in elsewhere.values())
        self._forget(now)

    def room(self, tenant: str) -> float:
        """Seats that it may have beside those that it has: all, unless somebody waits elsewhere. Then it has its part by the weights, and
        what others leave of theirs: without that, tenants that meet at no ingress would not take turns."""
        if not self._waits_elsewhere or math.isinf(self.seats):
            return math.inf
        mine, wanting = self._tenants[tenant], [one for one in self._tenants.values() if one.wanted]
        each = self.seats / sum(one.weight for one in wanting)
        others = sum(min(one.wanted, one.weight * each) for one in wanting if one is not mine)
        return max(0, math.ceil(self.seats - others) - mine.all_held)

    def _forget(self, now: float) -> None:
        for name in [name for name, one in self._tenants.items() if not one.is_there(now)]:
            del self._tenants[name]
