"""A cache holds what was asked for last, within a number and a size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grammar_service.bounded_cache import ENTRY_BYTES, BoundedCache


def cache(most: int = 100, texts: int = 100) -> BoundedCache[str, str]:
    return BoundedCache(most, most * ENTRY_BYTES + texts, len)


def test_what_was_not_asked_for_lately_goes_first() -> None:
    known = cache(most=2)
    known.put("a", "1")
    known.put("b", "2")
    assert known.get("a") == "1"
    known.put("c", "3")
    assert [known.get(key) for key in "abc"] == ["1", None, "3"]


def test_one_that_is_put_again_is_counted_once() -> None:
    known = cache()
    for _ in range(5):
        known.put("a", "x" * 40)
    assert (len(known), known.size_bytes) == (1, 40 + ENTRY_BYTES)


def test_one_larger_than_all_is_not_kept() -> None:
    known = cache(most=1, texts=10)
    known.put("a", "x" * 11)
    assert known.get("a") is None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3000)), max_size=40))
def test_its_size_is_that_of_what_it_holds(puts: list[tuple[str, int]]) -> None:
    known = cache(most=4, texts=2000)
    for key, size in puts:
        known.put(key, "x" * size)
        held = [value for each in "abcdef" if (value := known.get(each)) is not None]
        assert len(held) == len(known) <= 4
        assert known.size_bytes == sum(map(len, held)) + ENTRY_BYTES * len(held) <= 4 * ENTRY_BYTES + 2000
