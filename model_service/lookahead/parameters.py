"""What a request says of its look-ahead, within bounds, and where its text ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from model_service.errors import InvalidLookahead

MOST = 16
"""Of `d` and of `k`: a step asks for up to d · k tokens."""


class Method(StrEnum):
    CDLH = "cdlh"
    CDLH_APPX = "cdlh_appx"
    CDSL = "cdsl"


class Rejection(StrEnum):
    """How the target judges a draft: it must be the target's own choice, or is drawn by the ratio of both probabilities."""

    HARD = "hard"
    SAMPLING = "sampling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Names as in the paper (section 3). `d`: tokens of a look-ahead, `k`: candidates, `a_t`, `r_t`: the least share of accepted drafts
    and the least reward that keep drafts, `b`: tokens that the target may choose alone when its drafts fail.

    `keep_drafts`: accepted drafts stay whatever becomes of them (Algorithm 1, lines 32 to 51), or only if they reach both thresholds (the
    text of section 3.2.3, to which the published counts of calls fit). `reuse`: no look-ahead is computed twice; the text is the same.

    Raises InvalidLookahead: out of bounds.
    """

    d: int = 3
    k: int = 3
    a_t: float = 0.6
    r_t: float = 0.3
    b: int = 0
    rejection: Rejection = Rejection.HARD
    keep_drafts: bool = False
    reuse: bool = True

    def __post_init__(self) -> None:
        _within("d", self.d, 1, MOST)
        _within("k", self.k, 1, MOST)
        _within("b", self.b, 0, self.d)
        if not 0 < self.a_t <= 1:  # with 0, no accepted draft would do, and nothing would ever be said
            raise InvalidLookahead("a_t", f"must be over 0 and at most 1, not {self.a_t}")
        if not math.isfinite(self.r_t):
            raise InvalidLookahead("r_t", f"must be a number, not {self.r_t}")


@dataclass(frozen=True, slots=True)
class Stop:
    """A text ends with one of the tokens in `ends`, or after `most` tokens: what the request allows, or what the context has room for.
    Look-aheads do not reach beyond it: their reward would be one that the text cannot have."""

    most: int
    ends: frozenset[int]

    def reached(self, text: Sequence[int]) -> bool:
        return self.ended(text) or self.room(text) == 0

    def ended(self, text: Sequence[int]) -> bool:
        return bool(text) and text[-1] in self.ends

    def room(self, text: Sequence[int]) -> int:
        """How many tokens can follow."""
        return 0 if self.ended(text) else max(0, self.most - len(text))


def _within(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidLookahead(field, f"must be from {low} to {high}, not {value}")
