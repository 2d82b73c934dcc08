"""Which tenants are at the other ingresses: a hash in Redis with a field for each ingress."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

import msgspec

from grammar_service.artifacts.cache.bounded_hash import READ_BOUNDED_HASH
from router.turns.shares import Presence

FRESH_S = 2.0
"""An ingress that has tenants tells of them twice a second; who has not for so long has none, or has ended."""
GONE_S = 60.0
"""After so long what it told last is taken out."""
KEPT_S = 3600
"""Of all, when nobody tells anything."""
MOST_INGRESSES, MOST_BYTES = 1024, 512 << 10
"""Read twice a second. Decoding so many bytes takes 36 ms."""
_DECODER = msgspec.json.Decoder(tuple[int, dict[str, tuple[float, int, int]]])
"""A number that is never told twice, and each tenant's weight, seats and seats asked for."""


class PresenceElsewhere:
    """`clock` in seconds: ingresses do not compare theirs. What has not changed for `FRESH_S` is not so any more."""

    def __init__(self, key: str, clock: Callable[[], float]) -> None:
        self._key = key
        self._clock = clock
        self._name = uuid4().hex.encode()
        self._numbers = count()
        self._told: dict[bytes, tuple[bytes, float]] = {}
        self.has_told = False
        """That somebody is here."""

    def tell(self, calls: Any, here: Mapping[str, Presence]) -> None:
        """Adds calls to a pipeline of Redis, of which the last one answers what `of_others` takes."""
        now = self._clock()
        if gone := [name for name, (_, at) in self._told.items() if now >= at + GONE_S]:
            calls.hdel(self._key, *gone)
        tenants = {name: (one.weight, one.held, one.asked) for name, one in here.items()}
        calls.hset(self._key, self._name, msgspec.json.encode((next(self._numbers), tenants)))
        calls.expire(self._key, KEPT_S)
        calls.eval(READ_BOUNDED_HASH, 1, self._key, MOST_INGRESSES, MOST_BYTES)
        self.has_told = bool(here)

    def of_others(self, told: Sequence[bytes]) -> dict[str, Presence]:
        """By tenant, what is true of all other ingresses together."""
        now = self._clock()
        before, self._told = self._told, {}
        found: dict[str, Presence] = {}
        for name, value in zip(told[::2], told[1::2], strict=True):
            if name != self._name:
                known, at = before.get(name, (b"", now))
                self._told[name] = (value, at if value == known else now)
                if now < self._told[name][1] + FRESH_S:
                    _add(found, value)
        return found


def _add(found: dict[str, Presence], value: bytes) -> None:
    try:
        _, tenants = _DECODER.decode(value)
    except ValueError:  # another version's, or nobody's
        return
    for name, (weight, held, asked) in tenants.items():
        if 0 < weight < math.inf and held >= 0 and asked >= 0:
            there = Presence(weight, held, asked)
            found[name] = found[name] + there if name in found else there
