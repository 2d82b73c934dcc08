from __future__ import annotations

from functools import partial
from itertools import product
from operator import gt

from grammar_service.segments.memo import Memo, PairMemo


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


def test_what_was_found_of_a_pair_is_not_looked_for_again() -> None:
    memo = PairMemo(4)
    found = {(left, right): memo.get(left, right, lambda: True) for left in (0, 7) for right in (0, 1)}
    assert all(found.values())
    assert memo.get(7, 1, lambda: False)


def test_a_pair_is_not_taken_for_another_one_in_its_place() -> None:
    memo, ids = PairMemo(1), (0, 1, 2**31 - 1)
    for left, right in product(ids, ids):
        assert memo.get(left, right, partial(gt, left, right)) == (left > right)
        for other in product(ids, ids):
            assert memo.get(*other, partial(gt, *other)) == gt(*other)
