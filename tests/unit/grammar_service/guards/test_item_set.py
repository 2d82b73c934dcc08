"""The items that an array has, where none may come twice."""

from __future__ import annotations

import tracemalloc

from grammar_service.guards.distinct_items import Items
from grammar_service.guards.forms import CountedStrings
from grammar_service.guards.item_set import Counted, ItemSet
from grammar_service.guards.tokens.name_tokens import NameTokens
from tests.tokenizers.quoting_tokenizer import quoting_tokenizer

LONG = 4000


def counted(*listed: str) -> Counted:
    strings = ItemSet(NameTokens(quoting_tokenizer().vocabulary), Items(strings=CountedStrings(listed))).counted
    assert strings is not None
    return strings


def test_a_long_string_takes_no_square_of_its_length() -> None:
    long = b"a" * LONG
    strings = counted(long.decode(), "b" * LONG)
    tracemalloc.start()
    try:
        strings.add(long)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < LONG * 200
    assert [strings.left(begun) for begun in (b"", b"a", long, b"b")] == [1, 0, 0, 1]


def test_what_is_taken_back_is_left_again() -> None:
    strings = counted("a", "ab", "abb", "b")
    for name in (b"ab", b"abb", b"a"):
        strings.add(name)
    assert [strings.left(begun) for begun in (b"", b"a", b"ab", b"b")] == [1, 0, 0, 1]
    assert strings.may_end(b"")
    for name in (b"a", b"abb", b"ab"):
        strings.drop(name)
    assert [strings.left(begun) for begun in (b"", b"a", b"ab", b"b")] == [4, 3, 2, 1]
    assert not strings.may_end(b"")
