"""The line for the seats of one engine that nobody else sends requests to: turns by tenant, each tenant's oldest request first. Events in,
decisions out, no clock and no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from router.turns.shares import Shares, seats_for_one


@dataclass(frozen=True, slots=True, eq=False)
class Guest:
    """One request; it takes as many seats as it has `sequences`. Two are never equal."""

    tenant: str = ""
    weight: float = 1.0
    tokens: int = 0
    sequences: int = 1


class SeatLine:
    """A guest waits from `arrived` until `turn` names it, and holds its seats until `gone`. Seats are saved up for one that needs more than
    are free; meanwhile others go only where seats are kept for them."""

    def __init__(self, seats: int) -> None:
        self.shares = Shares(seats)
        self._seats = self._free = seats
        self._lines: dict[str, dict[Guest, None]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        """Guests that wait."""
        return self._waiting

    @property
    def free(self) -> int:
        return self._free

    def arrived(self, guest: Guest, now: float) -> None:
        self.shares.came(guest.tenant, self._needs(guest), guest.weight, now)
        self._lines.setdefault(guest.tenant, {})[guest] = None
        self._waiting += 1

    def gone(self, guest: Guest, now: float) -> None:
        """It waits no more, or gives back its seats."""
        line, needs = self._lines.get(guest.tenant), self._needs(guest)
        if line is not None and guest in line:
            self._leave_line(guest)
            self.shares.left(guest.tenant, needs, now)
        else:
            self._free += needs
            self.shares.ended(guest.tenant, needs, now)

    def turn(self, now: float) -> list[Guest]:
        """Who has seats from now on, in their order."""
        seated: list[Guest] = []
        saving, passed = False, set[str]()
        while self._free > 0 and len(passed) < len(self._lines):
            kept = self.shares.kept(now)
            tenant = self._next(passed, kept)
            guest = next(iter(self._lines[tenant]))
            needs = self._needs(guest)
            into_kept = self.shares.may_take(tenant, needs, kept)
            if needs <= (self._free if into_kept else self._free - kept) and (into_kept or not saving):
                self._seat(guest, needs)
                seated.append(guest)
            else:
                saving = True
                passed.add(tenant)
        return seated

    def _next(self, passed: set[str], kept: int) -> str:
        waiting = [name for name in self._lines if name not in passed]
        return waiting[0] if len(waiting) == 1 else min(waiting, key=lambda name: self.shares.order(name, kept))

    def _seat(self, guest: Guest, needs: int) -> None:
        self._leave_line(guest)
        self._free -= needs
        self.shares.seated(guest.tenant, needs, guest.tokens)

    def _leave_line(self, guest: Guest) -> None:
        line = self._lines[guest.tenant]
        del line[guest]
        self._waiting -= 1
        if not line:
            del self._lines[guest.tenant]

    def _needs(self, guest: Guest) -> int:
        """More seats than those that nobody keeps would never be free."""
        return min(guest.sequences, seats_for_one(self._seats))
