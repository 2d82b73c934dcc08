"""What an answer's usage says of its look-ahead."""

from __future__ import annotations

from typing import Any

from model_service.lookahead.account import Account

_SUMS = ("draft_calls", "draft_steps", "target_calls", "target_steps", "reward_calls", "proposed", "accepted")


class LookaheadFigures:
    """Of one call, which may have several prompts."""

    def __init__(self) -> None:
        self._accounts: list[Account] = []

    def add(self, account: Account) -> None:
        """It may still grow."""
        self._accounts.append(account)

    def as_dict(self) -> dict[str, Any]:
        """Calls, steps and drafts so far; `states`: how often drafts came to which; `reward`: the mean of the prompts' answers."""
        accounts = self._accounts
        sums: dict[str, Any] = {name: sum(getattr(account, name) for account in accounts) for name in _SUMS}
        states = [account.states for account in accounts]
        sums["states"] = {state.value: sum(one[state] for one in states) for state in (states[0] if states else ())}
        rewards = [account.reward for account in accounts if account.reward is not None]
        return {**sums, "reward": sum(rewards) / len(rewards) if rewards else None}
