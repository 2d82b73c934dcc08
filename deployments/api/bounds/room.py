"""How many sequences are under way at a time, on one event loop."""

from __future__ import annotations

import asyncio

from deployments.api.bounds.places import Places
from grammar_service.errors import MaskcastError
from router.turns.seat_line import Guest, SeatLine


class RoomFull(MaskcastError):
    """Too many wait already."""


class Room:
    """For `most` sequences. Who finds no seats waits for them, as long as so many may: turns are by tenant (`router.turns.shares`)."""

    def __init__(self, most: int, most_waiting: int) -> None:
        self._line = SeatLine(most)
        self._places = Places(most_waiting)
        self._seated: dict[Guest, asyncio.Future[None]] = {}

    @property
    def waiting(self) -> int:
        """Guests that are."""
        return len(self._line)

    @property
    def free(self) -> int:
        return self._line.free

    async def enter(self, guest: Guest) -> None:
        """Whoever has entered has to `leave`. Raises RoomFull: it would have to wait, and may not."""
        loop = asyncio.get_running_loop()
        self._line.arrived(guest, now := loop.time())
        seated = self._line.turn(now)
        if seated == [guest]:
            return
        if guest not in seated and not self._places.has_one_for(guest.tenant):
            self._line.gone(guest, now)
            self._tell(seated)
            raise RoomFull
        self._places.take(guest.tenant)
        self._seated[guest] = loop.create_future()
        self._tell(seated)
        try:
            await self._seated[guest]
        except asyncio.CancelledError:
            self.leave(guest)  # also where it was seated in the moment in which it left
            raise
        finally:
            del self._seated[guest]
            self._places.give_back(guest.tenant)

    def charge(self, guest: Guest, tokens: float) -> None:
        """It has used so many weighted tokens beyond its prompt."""
        self._line.shares.charge(guest.tenant, tokens)

    def leave(self, guest: Guest) -> None:
        now = asyncio.get_running_loop().time()
        self._line.gone(guest, now)
        if self._line:
            self._tell(self._line.turn(now))

    def _tell(self, seated: list[Guest]) -> None:
        for guest in seated:
            if not (future := self._seated[guest]).done():
                future.set_result(None)
