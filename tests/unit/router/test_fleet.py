"""Ranks are the same everywhere, share keys out evenly, and stay where they are when others come and go."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from router.fleet import Fleet

KEYS = [f"{number:064x}" for number in range(120)]
Names = st.sets(st.text(max_size=8), min_size=1, max_size=12)


def home(of: Fleet, key: str) -> str:
    return of.ids[int(np.argmin(of.scores(key)))]


@settings(max_examples=30)
@given(Names, st.text(max_size=8))
def test_a_replica_that_joins_takes_keys_and_moves_no_others(names: set[str], joining: str) -> None:
    before, after = Fleet(names - {joining}), Fleet(names | {joining})
    if not len(before):
        return
    homes = [(home(before, key), home(after, key)) for key in KEYS]
    assert all(new in (old, joining) for old, new in homes)
    share = 1 / len(after)
    moved = sum(new == joining for _, new in homes)
    assert moved <= share * len(KEYS) + 6 * math.sqrt(len(KEYS) * share * (1 - share)) + 1


@settings(max_examples=30)
@given(Names, st.data())
def test_a_replica_that_leaves_moves_its_own_keys_only(names: set[str], data: st.DataObject) -> None:
    leaving = data.draw(st.sampled_from(sorted(names)))
    before, after = Fleet(names), Fleet(names - {leaving})
    if len(after):
        assert all(home(before, key) in (home(after, key), leaving) for key in KEYS[:60])


def test_keys_are_shared_out_evenly() -> None:
    of = Fleet("abcd")
    homes = Counter(home(of, f"{number:064x}") for number in range(4000))
    assert all(900 < homes[replica] < 1100 for replica in of.ids)


def test_the_order_in_which_replicas_are_named_means_nothing_and_a_name_counts_once() -> None:
    names = [f"replica-{number}" for number in range(20)]
    one, other = Fleet(names), Fleet(reversed(names + names))
    assert one.ids == other.ids
    assert np.array_equal(one.scores("key"), other.scores("key"))


def test_a_position_is_that_of_the_id() -> None:
    of = Fleet("cab")
    assert [of.ids[of.positions[replica]] for replica in "abc"] == list("abc")


def test_another_process_ranks_alike() -> None:
    code = "from router.fleet import *; print(Fleet(f'r{n}' for n in range(9)).scores('key').argsort().tolist())"
    ranked = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": "7"})
    here = Fleet(f"r{number}" for number in range(9)).scores("key").argsort().tolist()
    assert ranked.stdout.strip() == str(here)


def test_without_replicas_there_are_no_scores() -> None:
    assert len(Fleet()) == 0
    assert Fleet().scores("key").tolist() == []


@given(st.text(alphabet=st.characters()))
def test_any_text_is_a_key(key: str) -> None:
    assert len(Fleet("ab").scores(key + "\ud800")) == 2


def test_the_ranks_say_who_was_passed_over() -> None:
    fleet = Fleet(f"r{number}" for number in range(9))
    for key in KEYS:
        order = [fleet.ids[position] for position in np.argsort(fleet.scores(key))]
        assert [fleet.passed_over(key, replica) for replica in order] == [(order[0], rank) for rank in range(9)]
    assert fleet.passed_over(None, "r1") == fleet.passed_over(KEYS[0], "gone") == ("", 0)
