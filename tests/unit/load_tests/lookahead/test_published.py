"""The cost model gives the published speed-ups, and the model of calls the calls of the machines."""

from __future__ import annotations

import pytest

from load_tests.lookahead.published.call_model import READINGS, Reading, Setting, calls
from load_tests.lookahead.published.figures import published_rows, targets


def test_the_published_speed_ups_follow_from_the_published_calls() -> None:
    rows = published_rows()
    assert len(rows) == 14
    assert [target.name for target in targets(rows) if not target.holds] == []


@pytest.mark.parametrize("reading", READINGS)
def test_drafts_that_always_pass_and_earn_cost_one_forward_for_all_of_them(reading: Reading) -> None:
    found = calls(Setting(d=4, a_t=0.5, b=0, accepted=1, appx_draft_calls=12), 1, reading)
    assert (found.draft, found.target) == (1, 0.25)


def test_drafts_that_never_pass_cost_a_forward_and_all_lookaheads_a_token() -> None:
    setting = Setting(d=3, a_t=0.5, b=0, accepted=0, appx_draft_calls=9)
    assert {(found.draft, found.target) for found in (calls(setting, 0, reading) for reading in READINGS)} == {(12, 1)}


def test_what_is_kept_saves_calls() -> None:
    setting = Setting(d=3, a_t=0.9, b=1, accepted=0.6, appx_draft_calls=8)
    discard, keep = (calls(setting, 0.5, reading) for reading in READINGS)
    assert keep.draft < discard.draft
    assert keep.target < discard.target
