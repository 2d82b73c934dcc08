"""Spans of forced text, joined where they touch, and told once to those who read along."""

from __future__ import annotations

from model_service.jump_forward.account import ForcedAccount


def test_neighbouring_spans_are_one() -> None:
    account = ForcedAccount()
    account.add(0, 2, 0, 5)
    account.add(0, 1, 5, 8)
    account.add(0, 1, 10, 12)
    assert account.spans(0) == [(0, 8), (10, 12)]
    assert account.tokens == 4


def test_choices_have_spans_of_their_own() -> None:
    account = ForcedAccount()
    account.add(0, 1, 0, 3)
    account.add(1, 1, 2, 4)
    assert (account.spans(0), account.spans(1), account.spans(2)) == ([(0, 3)], [(2, 4)], [])


def test_a_forced_token_without_text_counts_and_marks_nothing() -> None:
    account = ForcedAccount()
    account.add(0, 1, 4, 4)
    assert account.spans(0) == []
    assert account.tokens == 1


def test_a_reader_along_the_way_hears_of_every_character_once() -> None:
    account = ForcedAccount()
    account.add(0, 1, 0, 3)
    assert account.new_spans(0) == [(0, 3)]
    account.add(0, 1, 3, 5)
    assert account.new_spans(0) == [(3, 5)]
    assert account.new_spans(0) == []
    assert account.new_spans(7) == []


def test_text_that_is_cut_off_is_marked_no_more() -> None:
    account = ForcedAccount()
    account.add(0, 3, 0, 6)
    account.add(0, 2, 8, 12)
    account.add(0, 1, 12, 9)
    assert account.spans(0) == [(0, 6), (8, 9)]
    account.cut(0, 4)
    assert account.spans(0) == [(0, 4)]
    account.cut(3, 0)
    assert account.spans(3) == []
