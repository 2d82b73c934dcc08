"""The replicas that can be chosen, and how each grammar ranks them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Flags = NDArray[np.bool_]
Scores = NDArray[np.float64] | NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_SPARE_BITS = np.uint64(11)


@dataclass(frozen=True, slots=True)
class Member:
    """A replica and its share of the traffic; `weight` 2 gets twice as much as 1."""

    replica: str
    weight: float = 1.0


class Fleet:
    """All replicas at one moment, in the order of their ids: two processes that know the same replicas rank them alike.

    A member whose weight is not a positive, finite number is left out; of several with one id the last one counts.
    """

    def __init__(self, members: Iterable[Member] = ()) -> None:
        weights = {member.replica: member.weight for member in members if 0 < member.weight < math.inf}
        self.ids: tuple[str, ...] = tuple(sorted(weights))
        self.weights: Floats = np.array([weights[replica] for replica in self.ids], dtype=np.float64)
        self.weight = float(self.weights.sum())
        self.positions = {replica: position for position, replica in enumerate(self.ids)}
        self._is_even = bool((self.weights == 1.0).all())
        self._per_weight: Floats = -1.0 / self.weights
        self._hashes = np.array([hash64(replica) for replica in self.ids], dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.ids)

    def scores(self, key: str, among: Positions | None = None) -> Scores:
        """One number a replica, the lower the better: weighted rendezvous hashing (Thaler and Ravishankar 1998; weights after Schindelhauer
        and Schomaker 2005). A replica's score depends on nothing but itself, the key and its weight, so that one that joins or
        leaves moves its own keys only. Of the replicas at the positions `among`, in that order, or of all."""
        bits = _mixed((self._hashes if among is None else self._hashes[among]) ^ np.uint64(hash64(key)))
        if self._is_even:
            # The order of what follows, without the logarithms.
            return ~bits
        # 53 bits, in (0, 1]: the logarithm of 0 is none.
        uniform = ((bits >> _SPARE_BITS).astype(np.float64) + 1.0) * 2.0**-53
        scores: Floats = np.log(uniform) * (self._per_weight if among is None else self._per_weight[among])
        return scores

    def by_weight(self, values: Floats) -> Floats:
        """Of each replica, for a weight of 1."""
        return values if self._is_even else values / self.weights


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
