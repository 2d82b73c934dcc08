from __future__ import annotations

from grammar_service.segments.memo import Memo


def test_what_was_found_is_not_looked_for_again() -> None:
    memo: Memo[str, int] = Memo(2)
    assert memo.get("a", lambda: 1) == 1
    assert memo.get("a", lambda: 2) == 1


def test_nothing_is_a_result_as_well() -> None:
    memo: Memo[str, int | None] = Memo(2)
    assert memo.get("a", lambda: None) is None
    assert memo.get("a", lambda: 1) is None


def test_the_least_recently_used_result_is_dropped() -> None:
    memo: Memo[str, int] = Memo(2)
    for key in ("a", "b", "a", "c"):
        memo.get(key, lambda: 1)
    assert len(memo) == 2
    assert memo.get("a", lambda: 2) == 1
    assert memo.get("b", lambda: 2) == 2
