"""What a request may say of its look-ahead, and which field is told of where it is at fault."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from model_service.errors import InvalidLookahead
from model_service.lookahead import Method, Parameters, Rejection
from model_service.lookahead.request import read
from model_service.lookahead.rewards.specs import ConceptsSpec

REWARD = {"type": "concepts", "words": ["dog"]}


def test_what_is_not_said_is_as_in_the_paper() -> None:
    asked = read({"method": "cdsl", "reward": REWARD})
    assert asked.method is Method.CDSL
    assert asked.parameters == Parameters()
    assert asked.reward == ConceptsSpec(("dog",))


def test_every_parameter_can_be_said() -> None:
    given: dict[str, Any] = {"d": 5, "k": 2, "a_t": 0.5, "r_t": 2, "b": 1, "rejection": "sampling", "keep_drafts": True, "reuse": False}
    asked = read({"method": "cdlh_appx", "reward": REWARD, **given}, seed=3)
    assert asked.parameters == Parameters(**{**given, "rejection": Rejection.SAMPLING})
    assert asked.seed == 3


def test_it_reaches_another_process() -> None:
    terms = [{"reward": REWARD, "weight": 2}, {"reward": {"type": "length", "most": 3}}]
    asked = read({"method": "cdsl", "rejection": "sampling", "reward": {"type": "sum", "terms": terms}})
    assert pickle.loads(pickle.dumps(asked)) == asked


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"method": "greedy"}, "method"),
        ({"reward": {"type": "concepts", "words": []}}, "reward.words"),
        ({"reward": 3}, "reward"),
        ({"d": 17}, "d"),
        ({"k": 0}, "k"),
        ({"b": 4}, "b"),
        ({"a_t": 0}, "a_t"),
        ({"a_t": 1.5}, "a_t"),
        ({"d": "three"}, "d"),
        ({"rejection": "soft"}, "rejection"),
        ({"depth": 3}, ""),
    ],
)
def test_a_fault_is_told_with_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidLookahead) as caught:
        read({"method": "cdsl", "reward": REWARD, **changed})
    assert caught.value.field == field
