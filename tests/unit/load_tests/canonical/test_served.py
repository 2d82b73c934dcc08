"""What is made of the rows of canonical and plain requests."""

from __future__ import annotations

import httpx
import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.reporting.report import Row
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.served import CANONICAL, PLAIN, WORKLOADS, Anew, add, targets

ANEW: Row = {"wanted": 500, "encoded": 499, "canonical": 498, "fallbacks": 2, "failed": 1}


def cells(rates: dict[str, list[float]]) -> list[Row]:
    return [
        {"workload": workload, "turn": turn, "side": side, "requests_per_s": rate, "failed": 0}
        for workload in WORKLOADS
        for side, found in rates.items()
        for turn, rate in enumerate(found)
    ]


def test_ratios_are_of_one_turn_and_of_these_the_median_counts() -> None:
    found = list(targets([*cells({PLAIN: [100, 50, 10], CANONICAL: [90, 48, 20]}), ANEW]))
    assert [one.value for one in found[: len(WORKLOADS)]] == [0.96] * len(WORKLOADS)
    assert all(one.holds for one in found[: len(WORKLOADS)])


def test_each_answer_that_is_not_canonical_counts() -> None:
    found = list(targets([*cells({PLAIN: [1.0], CANONICAL: [0.9]}), ANEW]))[len(WORKLOADS) :]
    assert [one.value for one in found] == [499, 1, 2, 1]
    assert not any(one.holds for one in found)


@pytest.mark.parametrize(("finish", "encoded"), [("stop", 1), ("length", 0)])
def test_an_answer_counts_that_ended_by_itself(finish: str, encoded: int) -> None:
    tokenizer, found = GrammarTokenizer.load(EMBEDDED_WEIGHTS), Anew(1)
    tokens = [*tokenizer.encode("the end"), tokenizer.stop_token_ids[0]]
    choice = {"finish_reason": finish, "token_ids": tokens, "message": {"content": "the end"}}
    usage = {"completion_tokens_details": {"not_canonical": 0}}
    add(httpx.Response(200, json={"choices": [choice], "usage": usage}), found, tokenizer)
    assert found == Anew(1, asked=1, encoded=encoded, canonical=encoded)
    add(httpx.Response(503), found, tokenizer)
    assert (found.asked, found.failed) == (2, 1)
