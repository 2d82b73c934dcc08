"""Ranks are the same everywhere, follow the weights, and stay where they are when others come and go."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from router.fleet import Fleet, Member

WEIGHTS = st.floats(0.1, 10)
KEYS = [f"{number:064x}" for number in range(120)]
Sizes = st.dictionaries(st.text(max_size=8), WEIGHTS, min_size=1, max_size=12)


def fleet(weights: dict[str, float]) -> Fleet:
    return Fleet(Member(replica, weight) for replica, weight in weights.items())


def home(of: Fleet, key: str) -> str:
    return of.ids[int(np.argmin(of.scores(key)))]


@settings(max_examples=30)
@given(Sizes, st.text(max_size=8), WEIGHTS)
def test_a_replica_that_joins_takes_keys_and_moves_no_others(weights: dict[str, float], joining: str, weight: float) -> None:
    before = fleet({replica: share for replica, share in weights.items() if replica != joining})
    after = fleet({**weights, joining: weight})
    if not len(before):
        return
    homes = [(home(before, key), home(after, key)) for key in KEYS]
    assert all(new in (old, joining) for old, new in homes)
    share = weight / float(after.weights.sum())
    moved = sum(new == joining for _, new in homes)
    assert moved <= share * len(KEYS) + 6 * math.sqrt(len(KEYS) * share * (1 - share)) + 1


@settings(max_examples=30)
@given(Sizes, st.data())
def test_a_replica_that_leaves_moves_its_own_keys_only(weights: dict[str, float], data: st.DataObject) -> None:
    leaving = data.draw(st.sampled_from(sorted(weights)))
    before, after = fleet(weights), fleet({replica: share for replica, share in weights.items() if replica != leaving})
    if len(after):
        assert all(home(before, key) in (home(after, key), leaving) for key in KEYS[:60])


@settings(max_examples=30)
@given(Sizes, WEIGHTS, st.data())
def test_a_changed_weight_moves_keys_of_that_replica_only(weights: dict[str, float], weight: float, data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(sorted(weights)))
    before, after = fleet(weights), fleet({**weights, changed: weight})
    for key in KEYS[:60]:
        old, new = home(before, key), home(after, key)
        assert old == new or changed in (old, new)


def test_keys_are_shared_out_by_weight() -> None:
    of = fleet({"a": 1, "b": 2, "c": 1})
    homes = Counter(home(of, f"{number:064x}") for number in range(4000))
    assert 900 < homes["a"] < 1100
    assert 1880 < homes["b"] < 2120


def test_the_order_in_which_replicas_are_named_means_nothing() -> None:
    names = [f"replica-{number}" for number in range(20)]
    one, other = Fleet(map(Member, names)), Fleet(map(Member, reversed(names)))
    assert one.ids == other.ids
    assert np.array_equal(one.scores("key"), other.scores("key"))


def test_another_process_ranks_alike() -> None:
    code = "from router.fleet import *; print(Fleet(Member(f'r{n}', 1 + n % 3) for n in range(9)).scores('key').argsort().tolist())"
    ranked = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": "7"})
    here = Fleet(Member(f"r{number}", 1 + number % 3) for number in range(9)).scores("key").argsort().tolist()
    assert ranked.stdout.strip() == str(here)


def test_a_part_of_the_fleet_scores_as_it_does_within_the_whole() -> None:
    of = fleet({"a": 1, "b": 2, "c": 3})
    assert np.array_equal(of.scores("key", np.array([2, 0])), of.scores("key")[[2, 0]])


def test_unusable_weights_are_left_out() -> None:
    members = [Member("a"), Member("b", 0), Member("c", -1), Member("d", math.nan), Member("e", math.inf)]
    assert Fleet(members).ids == ("a",)
