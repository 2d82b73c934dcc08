"""Pinned artifacts stay in memory, within their half of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grammar_service.artifacts.cache import MemoryCache

KEYS = "abcdef"


def test_a_pinned_value_outlives_all_that_come_after_it() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    cache.put("a", b"12345")
    assert cache.pin("a")
    for key in "bcdefg":
        cache.put(key, b"12345")
    assert cache.get("a") == b"12345"
    assert cache.get("g") == b"12345"
    assert len(cache) == 2


def test_a_value_that_is_unpinned_may_go_again() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    cache.put("a", b"12345")
    cache.pin("a")
    cache.unpin("a")
    cache.put("b", b"123456")
    assert cache.get("a") is None
    assert (cache.size_bytes, cache.pinned_bytes) == (6, 0)


def test_pins_over_half_of_the_cache_free_the_one_that_was_used_longest_ago() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    for key in "abc":
        cache.put(key, b"12")
        assert cache.pin(key)
        assert cache.get("a")
    assert cache.pinned_bytes == 4
    cache.put("d", b"123456")
    assert [key for key in KEYS if cache.get(key)] == ["a", "c", "d"]


def test_what_is_not_there_or_larger_than_half_cannot_be_pinned() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    assert not cache.pin("a")
    cache.put("a", b"123456")
    assert not cache.pin("a")
    assert cache.get("a") == b"123456"


def test_a_pinned_key_that_is_put_again_stays_pinned() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    cache.put("a", b"1")
    cache.pin("a")
    cache.put("a", b"12345")
    assert (cache.pinned_bytes, cache.size_bytes) == (5, 5)


def test_a_value_that_fits_beside_no_pin_evicts_nothing() -> None:
    cache: MemoryCache[bytes] = MemoryCache(10)
    cache.put("a", b"12345")
    cache.pin("a")
    cache.put("b", b"1")
    cache.put("c", b"123456")
    assert cache.get("c") is None
    assert cache.get("b") == b"1"


STEPS = st.lists(st.tuples(st.sampled_from(["put", "pin", "unpin", "get", "discard"]), st.sampled_from(KEYS), st.integers(0, 24)))


@given(STEPS)
def test_sizes_add_up_and_stay_within_their_bounds(steps: list[tuple[str, str, int]]) -> None:
    cache: MemoryCache[bytes] = MemoryCache(20)
    for step, key, size in steps:
        if step == "put":
            cache.put(key, bytes(size))
        else:
            {"pin": cache.pin, "unpin": cache.unpin, "get": cache.get, "discard": cache.discard}[step](key)
        held = [value for name in KEYS if (value := cache.get(name)) is not None]
        assert cache.size_bytes == sum(map(len, held)) <= 20
        assert len(cache) == len(held)
        assert cache.pinned_bytes <= 10
