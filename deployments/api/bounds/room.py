"""How many sequences are under way at a time, on one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class Room:
    """For `most` sequences. Who finds none waits for it, first come, first served: one of many is not passed by those that need less."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free = most
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        """Calls that are."""
        return len(self._waiting)

    def has_room_for(self, sequences: int) -> bool:
        """Who came now would not wait."""
        return not self._waiting and self._free >= self._taken(sequences)

    async def enter(self, sequences: int) -> None:
        """Whoever has entered has to `leave` with as many."""
        if self.has_room_for(sequences):
            self._free -= self._taken(sequences)
            return
        seated: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (sequences, seated)
        self._waiting.append(place)
        try:
            await seated
        except asyncio.CancelledError:
            with suppress(ValueError):
                self._waiting.remove(place)
            if seated.done() and not seated.cancelled():
                self._free += self._taken(sequences)  # it was seated in the moment in which it left
            self._seat()
            raise

    def leave(self, sequences: int) -> None:
        self._free += self._taken(sequences)
        self._seat()

    def _taken(self, sequences: int) -> int:
        # One that is too large for an empty room has it alone.
        return min(sequences, self._most)

    def _seat(self) -> None:
        while self._waiting and self._free >= self._taken(self._waiting[0][0]):
            sequences, seated = self._waiting.popleft()
            if not seated.done():
                self._free -= self._taken(sequences)
                seated.set_result(None)
