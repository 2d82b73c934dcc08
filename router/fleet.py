"""The replicas that can be chosen, and how each grammar ranks them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Flags = NDArray[np.bool_]
Scores = NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


class Fleet:
    """All replicas at one moment, in the order of their ids: two processes that know the same replicas rank them alike."""

    def __init__(self, replicas: Iterable[str] = ()) -> None:
        self.ids: tuple[str, ...] = tuple(sorted(set(replicas)))
        self.positions = {replica: position for position, replica in enumerate(self.ids)}
        self._hashes = np.array([hash64(replica) for replica in self.ids], dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.ids)

    def scores(self, key: str) -> Scores:
        """One number a replica, the lower the better: rendezvous hashing (Thaler and Ravishankar 1998). A replica's score depends on
        nothing but itself and the key, so that one that joins or leaves moves its own keys only."""
        return ~_mixed(self._hashes ^ np.uint64(hash64(key)))

    def passed_over(self, key: str | None, replica: str) -> tuple[str, int]:
        """The first replica in the ranks of a key, and how many come before this one; for none, or one that is gone, nothing and none."""
        if key is None or replica not in self.positions:
            return "", 0
        scores = self.scores(key)
        return self.ids[int(scores.argmin())], int((scores < scores[self.positions[replica]]).sum())


def hash64(text: str) -> int:
    """64 bits of BLAKE2b: the same in every process, unlike `hash`."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function (Steele, Lea and Flood 2014), modulo 2^64; the argument is used up."""
    bits += _GAMMA
    bits ^= bits >> _SHIFTS[0]
    bits *= _FIRST
    bits ^= bits >> _SHIFTS[1]
    bits *= _SECOND
    bits ^= bits >> _SHIFTS[2]
    return bits
