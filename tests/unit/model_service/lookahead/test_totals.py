"""What is counted of all answers."""

from __future__ import annotations

from model_service.errors import InvalidScore, LookaheadFailed, RewardLate
from model_service.lookahead import Account
from model_service.lookahead.instructions import Emit, State, Verdict
from model_service.lookahead.totals import LookaheadTotals


def test_answers_and_what_became_of_them_add_up() -> None:
    totals = LookaheadTotals()
    assert totals.as_dict() == {}
    account = Account(target_calls=2, draft_calls=5)
    account.emitted(Emit((4, 5), 0.5, Verdict(State.S3, 3, 2, 0.5)))
    totals.ended(account, 0.25)
    totals.ended(Account(target_calls=1), 0.5)
    counts = totals.as_dict()
    assert (counts["answers"], counts["tokens"], counts["target_calls"], counts["draft_calls"]) == (2, 2, 3, 5)
    assert (counts["proposed"], counts["accepted"], counts["s3"], counts["s1"], counts["reward_us"]) == (3, 2, 1, 0, 750_000)


def test_rewards_that_fail_are_told_apart() -> None:
    totals = LookaheadTotals()
    for error in (RewardLate("late"), InvalidScore("nan"), InvalidScore("inf"), LookaheadFailed("gone")):
        totals.failed(error)
    assert (totals.as_dict()["reward_timeouts"], totals.as_dict()["reward_failures"]) == (1, 2)
