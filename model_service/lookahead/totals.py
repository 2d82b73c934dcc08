"""What all look-aheads of an engine have come to."""

from __future__ import annotations

from collections import Counter

from model_service.errors import InvalidScore, RewardFailed, RewardLate
from model_service.lookahead.account import Account

_SUMS = ("tokens", "draft_calls", "draft_steps", "target_calls", "target_steps", "reward_calls", "proposed", "accepted")


class LookaheadTotals:
    """Counters that only grow, by name: `answers`, whether or not they came to their end, what their accounts have, `reward_us`
    (microseconds that were waited for rewards), `reward_timeouts`, `reward_failures`."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def as_dict(self) -> dict[str, int]:
        return dict(self._counts)

    def ended(self, account: Account, reward_s: float) -> None:
        """An answer has, however it did."""
        self._counts.update({name: getattr(account, name) for name in _SUMS})
        self._counts.update({state.value: number for state, number in account.states.items()})
        self._counts.update({"answers": 1, "reward_us": round(reward_s * 1e6)})

    def failed(self, error: Exception) -> None:
        failed = isinstance(error, InvalidScore | RewardFailed)
        self._counts.update({"reward_timeouts": isinstance(error, RewardLate), "reward_failures": failed})
