"""A real engine core counts its steps, its masks and its grammars, and its replica reads them."""

from __future__ import annotations

from dataclasses import astuple

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.running_engine import RunningEngine

ASKED = "Extract name, age as JSON.\n\nMeet Ada Young. Age: 36."


def regex(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text)


def test_an_engine_counts_steps_and_the_grammars_that_it_holds(jumping: RunningEngine) -> None:
    before = jumping.engine.core
    for text in ("figures-[a-c]{3}", "figures-[d-f]{3}", "figures-[a-c]{3}"):
        jumping.ask(ASKED, regex(text))
    after = jumping.engine.core
    assert after.grammars_loaded - before.grammars_loaded == 2
    assert after.grammars_resident - before.grammars_resident == 2
    # Each answer is sampled at least once; what is forced costs no step.
    assert after.steps - before.steps >= 3
    assert after.mask_rows - before.mask_rows >= 3
    assert after.step_us - before.step_us > after.mask_us - before.mask_us > 0
    assert after.distinct_mask_rows == 0
    assert after.step_ms(before) > 0
    assert astuple(jumping.engine.core) == astuple(after)


def test_different_rows_are_counted_where_they_are_wanted(stepping: RunningEngine) -> None:
    before = stepping.engine.core
    stepping.ask_all([(ASKED, regex("same-[a-c]{8}"), {})] * 8)
    after = stepping.engine.core
    assert 0 < after.distinct_mask_rows - before.distinct_mask_rows < after.mask_rows - before.mask_rows
