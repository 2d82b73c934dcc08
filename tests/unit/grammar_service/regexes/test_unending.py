from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from grammar_service.regexes.unending import endless, leading

STATES = range(6)
SOME = st.frozensets(st.sampled_from(STATES))
GRAPHS = st.lists(st.sets(st.sampled_from(STATES), max_size=3), min_size=len(STATES), max_size=len(STATES))


def reached(targets: list[set[int]], begin: int, through: frozenset[int] | set[int]) -> set[int]:
    """From `begin`, by one move or more, all of them to states of `through`."""
    found: set[int] = set()
    waiting = [begin]
    while waiting:
        more = (targets[waiting.pop()] & through) - found
        found |= more
        waiting += more
    return found


@given(GRAPHS, SOME)
def test_states_lead_to_an_end_that_can_be_reached(targets: list[set[int]], ends: frozenset[int]) -> None:
    assert leading(targets, ends) == {state for state in STATES if state in ends or reached(targets, state, set(STATES)) & ends}


@given(GRAPHS, SOME)
def test_a_way_without_end_comes_to_a_circle(targets: list[set[int]], states: frozenset[int]) -> None:
    circles = {state for state in states if state in reached(targets, state, states)}
    assert endless(targets, set(states)) == {state for state in states if state in circles or reached(targets, state, states) & circles}


def test_a_long_chain_takes_a_moment() -> None:
    """Of states that each lead to the next one only: `a{1,20000}`."""
    length = 20_000
    chain = [{state + 1} for state in range(length)] + [set()]
    began = time.process_time()
    assert len(leading(chain, {length})) == length + 1
    assert endless(chain, set(range(length + 1))) == set()
    assert time.process_time() - began < 2
