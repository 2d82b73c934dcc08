"""Drafts are made where those like them were accepted, and tried again where they were not."""

from __future__ import annotations

import random

import pytest

from model_service.jump_forward.acceptance import EXPECTED, REMEMBERED, TRIED_AGAIN, Acceptance, Kind

NAME: Kind = ("name", "words")


def judge(acceptance: Acceptance, kind: Kind, share: float, runs: int, seed: int = 0) -> None:
    chance = random.Random(seed)
    for _ in range(runs):
        accepted = 0
        while accepted < 4 and chance.random() < share:
            accepted += 1
        acceptance.record(kind, accepted, was_rejected=accepted < 4)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_it_learns_the_share_within_some_requests(share: float) -> None:
    acceptance = Acceptance()
    judge(acceptance, NAME, share, 40)
    assert acceptance.likely(NAME) == pytest.approx(share, abs=0.2)
    assert acceptance.likely(("another one", "words")) == pytest.approx(share, abs=0.2)
    assert acceptance.likely(("name", "prompt")) == EXPECTED


def test_drafts_in_turn_are_as_many_as_are_likely_enough() -> None:
    acceptance = Acceptance()
    judge(acceptance, NAME, 0.5, 200)
    half = acceptance.likely(NAME)
    assert acceptance.worthwhile(NAME, 1.0, half**3 * 0.99) == 3
    assert acceptance.worthwhile(NAME, half, half**3 * 0.99) == 2
    assert acceptance.worthwhile(NAME, 0.1, 0.2) == 0
    assert acceptance.worthwhile(NAME, 1.0, 0.0) > 1000


def test_what_is_not_worth_it_is_tried_again_seldom_and_while_it_is_accepted_at_once() -> None:
    acceptance = Acceptance()
    judge(acceptance, NAME, 0.0, 50)
    due = [acceptance.is_retry_due(NAME) for _ in range(3 * (TRIED_AGAIN + 1))]
    assert sum(due) == 3
    acceptance.record(NAME, 1, was_rejected=False)
    assert acceptance.is_retry_due(NAME)
    acceptance.record(NAME, 0, was_rejected=True)
    assert not acceptance.is_retry_due(NAME)


def test_kinds_that_were_not_judged_for_long_are_forgotten() -> None:
    acceptance = Acceptance()
    judge(acceptance, NAME, 0.0, 50)
    for number in range(REMEMBERED):
        acceptance.record((number, "prompt"), 1, was_rejected=False)
    judge(acceptance, ("another", "words"), 1.0, 100)
    assert acceptance.likely(NAME) > 0.9
