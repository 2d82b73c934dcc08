"""Workers hear of every forced token once, and of none that does not fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model_service.jump_forward.forced import ForcedTokens, Unsent, fitting


def test_forced_tokens_wait_until_their_request_is_scheduled() -> None:
    unsent = Unsent()
    unsent.add("a", 3, [7, 8])
    assert unsent.take({"b"}) == {}
    assert unsent.take({"a", "b"}) == {"a": ForcedTokens(3, (7, 8))}
    assert unsent.take({"a"}) == {}


def test_what_is_forced_before_anything_was_sent_is_sent_together() -> None:
    unsent = Unsent()
    unsent.add("a", 0, [1, 2])
    unsent.add("a", 2, [3])
    assert unsent.take({"a"}) == {"a": ForcedTokens(0, (1, 2, 3))}


def test_nothing_is_sent_of_a_request_that_has_ended() -> None:
    unsent = Unsent()
    unsent.add("a", 0, [1])
    unsent.drop("a")
    unsent.drop("never there")
    assert unsent.take({"a"}) == {}


@given(st.lists(st.integers(0, 9)), st.integers(-2, 12), st.sets(st.integers(0, 9)))
def test_what_fits_is_a_start_without_stop_tokens(tokens: list[int], room: int, stops: set[int]) -> None:
    kept = fitting(tokens, room, stops)
    assert kept == tokens[: len(kept)]
    assert not stops.intersection(kept)
    assert len(kept) <= max(0, room)
    following = tokens[len(kept) : len(kept) + 1]
    assert not following or following[0] in stops or len(kept) == max(0, room)
