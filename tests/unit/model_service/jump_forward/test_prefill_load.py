"""What a replica has to prefill, as a router should see it."""

from __future__ import annotations

from model_service.jump_forward.prefill_load import PrefillLoad


def test_a_prompt_counts_until_its_first_token() -> None:
    load = PrefillLoad()
    load.accepted("a", 100, None)
    load.accepted("b", 20, "key")
    assert load.tokens == 120
    load.answered("a")
    assert load.tokens == 20
    load.answered("b", forced=0)
    assert load.tokens == 0


def test_the_first_segment_of_a_grammar_is_expected_once_it_was_seen() -> None:
    load = PrefillLoad()
    load.accepted("a", 10, "key")
    load.answered("a", forced=7)
    load.accepted("b", 10, "key")
    load.accepted("c", 10, "other")
    assert load.tokens == 17 + 10


def test_a_request_that_ends_unanswered_tells_nothing_of_its_grammar() -> None:
    load = PrefillLoad()
    load.accepted("a", 10, "key")
    load.answered("a", forced=7)
    load.accepted("b", 10, "key")
    load.answered("b")
    load.accepted("c", 10, "key")
    assert load.tokens == 17


def test_only_so_many_grammars_are_remembered() -> None:
    load = PrefillLoad(remembered=2)
    for key in ("old", "new", "newest"):
        load.accepted(key, 1, key)
        load.answered(key, forced=5)
    load.accepted("a", 1, "old")
    load.accepted("b", 1, "newest")
    assert load.tokens == 1 + 6
