"""What usage tells of several answers."""

from __future__ import annotations

from model_service.lookahead import Account
from model_service.lookahead.figures import LookaheadFigures
from model_service.lookahead.instructions import Emit, State, Verdict


def test_calls_are_summed_and_rewards_are_meant() -> None:
    figures = LookaheadFigures()
    accounts = [Account(target_calls=2, proposed=3), Account(target_calls=5), Account()]
    for account in accounts:
        figures.add(account)
    accounts[0].emitted(Emit((4,), 0.5, Verdict(State.S1, 3, 3, 0.5)))
    accounts[1].emitted(Emit((4,), 1.0))
    usage = figures.as_dict()
    assert usage["target_calls"] == 7
    assert usage["proposed"] == 6
    assert usage["states"] == {"s1": 1, "s2": 0, "s3": 0, "s4": 0}
    assert usage["reward"] == 0.75


def test_no_answer_has_no_reward() -> None:
    assert LookaheadFigures().as_dict()["reward"] is None
