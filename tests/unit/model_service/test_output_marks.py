"""What an engine core tells of an output stands where a number of NaNs would."""

from __future__ import annotations

import pytest

from model_service.output_marks import Mark, marked, marks


@pytest.mark.parametrize("number", [0, 3])
def test_an_output_that_vllm_has_counted_has_no_marks(number: int) -> None:
    assert marks(number) == Mark(0)


def test_marks_are_added_to_each_other_and_never_look_like_nans() -> None:
    forced = marked(0, Mark.FORCED)
    both = marked(forced, Mark.NOT_CANONICAL)
    assert marks(forced) == Mark.FORCED
    assert marks(both) == Mark.FORCED | Mark.NOT_CANONICAL
    assert marked(both, Mark.FORCED) == both
    assert max(forced, both) < 0


def test_a_mark_takes_the_place_of_nans() -> None:
    assert marks(marked(2, Mark.NOT_CANONICAL)) == Mark.NOT_CANONICAL
