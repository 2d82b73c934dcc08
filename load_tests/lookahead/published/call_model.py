"""How many calls CDSL needs for a token, from how often drafts pass: which reading of the paper its authors have run.

Every draft is accepted with the same chance, whatever came before, and what is accepted earns enough with another chance. Nothing is
decoded here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

CANDIDATES = 3
_GRID = 400


@dataclass(frozen=True, slots=True)
class Reading:
    """Whether accepted drafts are kept when the target goes on (states S2, S3), and when they do not earn enough (S4)."""

    name: str
    keep_failed: bool
    keep_unrewarded: bool


READINGS = (
    Reading("text: discard", keep_failed=False, keep_unrewarded=False),
    Reading("Algorithm 1: keep", keep_failed=True, keep_unrewarded=True),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A pair of models: `accepted`, the chance of a draft, and `appx_draft_calls`, the draft's calls for a token of CDLH-appx."""

    d: int
    a_t: float
    b: int
    accepted: float
    appx_draft_calls: float


@dataclass(frozen=True, slots=True)
class Calls:
    """For a token; or, while they are summed, for an iteration of so many tokens."""

    tokens: float
    draft: float
    target: float

    def times(self, share: float) -> Calls:
        return Calls(self.tokens * share, self.draft * share, self.target * share)

    def plus(self, other: Calls) -> Calls:
        return Calls(self.tokens + other.tokens, self.draft + other.draft, self.target + other.target)

    def a_token(self) -> Calls:
        return self.times(1 / self.tokens)

    def distance(self, draft: float, target: float) -> float:
        """The length of both logarithms' differences: about the relative error."""
        return math.hypot(math.log(self.draft / draft), math.log(self.target / target))


def calls(setting: Setting, rewarded: float, reading: Reading) -> Calls:
    """`rewarded`: the chance to earn enough. The verification's rows serve the tokens after it, so that step 2 needs no forward of its own,
    and step 1 none for its first token."""
    total = Calls(0, 0, 0)
    for n in range(setting.d + 1):
        chance = setting.accepted**n * (1 if n == setting.d else 1 - setting.accepted)
        for share, part in _iteration(setting, rewarded, reading, n):
            total = total.plus(part.times(chance * share))
    return total.a_token()


def _iteration(setting: Setting, rewarded: float, reading: Reading, n: int) -> Iterator[tuple[float, Calls]]:
    """What can happen when n drafts are accepted, with its chance."""
    drafted = setting.d * min(1, setting.appx_draft_calls / (CANDIDATES * setting.d))  # look-aheads are cut where the text ends
    if n / setting.d >= setting.a_t:
        yield rewarded, Calls(n, drafted, 1)
        yield 1 - rewarded, Calls(n * reading.keep_unrewarded + 1, drafted + setting.appx_draft_calls, 1)
        return
    kept, left = n * reading.keep_failed, 1.0
    for alone in range(1, setting.b + 1):
        yield left * rewarded, Calls(kept + alone, drafted * (1 + alone), alone)
        left *= 1 - rewarded
    yield left, Calls(kept + 1, drafted * (1 + setting.b) + setting.appx_draft_calls, max(1, setting.b))


def fitted(setting: Setting, reading: Reading, draft: float, target: float) -> tuple[float, Calls]:
    """The chance to earn enough that comes nearest to the published calls, which is not published, and the calls with it."""
    tried = [(share / _GRID, calls(setting, share / _GRID, reading)) for share in range(_GRID + 1)]
    return min(tried, key=lambda one: one[1].distance(draft, target))
