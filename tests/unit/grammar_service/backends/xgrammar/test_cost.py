from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.backends.xgrammar.cost import LoadRate, Pace, ReaderPaces, RuleCosts, TableSize, worth_tables

MILLISECONDS = st.floats(0.01, 60_000)
SIZES = st.builds(TableSize, st.integers(0, 10**8), st.integers(0, 10**8))
NO_BOUND = 1 << 62


@given(MILLISECONDS, MILLISECONDS, SIZES)
def test_tables_are_chosen_exactly_where_they_are_cheaper(compile_ms: float, load_ms: float, size: TableSize) -> None:
    assert worth_tables(compile_ms, load_ms, size, NO_BOUND) == (load_ms < compile_ms)


@given(SIZES, st.integers(0, 10**9))
def test_tables_over_the_bound_are_never_chosen(size: TableSize, bound: int) -> None:
    if size.total > bound:
        assert not worth_tables(1e9, 0.0, size, bound)


@given(st.floats(0.1, 100), SIZES)
def test_a_rate_foretells_its_own_sample_and_grows_with_size(ms: float, size: TableSize) -> None:
    rate = LoadRate(ms, 1000)
    assert abs(rate.load_ms(TableSize(250, 0)) - ms) < 1e-6
    assert rate.load_ms(size) <= rate.load_ms(TableSize(size.automata + 1, size.masks))


def test_a_dear_rule_is_charged_wherever_it_is_met_again() -> None:
    costs = RuleCosts()
    assert costs.cold_ms({1: 90, 2: 10}, 1000.0) == 1000.0
    assert costs.cold_ms({1: 90, 3: 10}, 2.0) == pytest.approx(990, abs=5)


def test_a_short_rule_is_not_charged_for_a_long_one() -> None:
    costs = RuleCosts()
    costs.cold_ms({1: 5000, 2: 100}, 7000.0)
    assert costs.cold_ms({2: 100, 3: 100}, 2.0) < 10


def test_a_grammar_that_the_compiler_has_costs_what_it_did() -> None:
    costs = RuleCosts()
    rules = dict.fromkeys(range(100), 1)
    assert costs.cold_ms(rules, 50.0) == 50.0
    assert costs.cold_ms(rules, 0.1) == pytest.approx(50.0)


def test_cheap_rules_are_not_charged_again() -> None:
    costs = RuleCosts()
    costs.cold_ms(dict.fromkeys(range(100), 1), 50.0)
    assert costs.cold_ms(dict.fromkeys(range(50, 200), 1), 60.0) == 60.0


def test_the_rules_met_first_are_forgotten_first() -> None:
    costs = RuleCosts(most=2)
    for rule in (1, 2, 3):
        costs.cold_ms({rule: 1}, 500.0)
    assert costs.cold_ms({3: 1}, 1.0) == 501.0
    assert costs.cold_ms({1: 1}, 1.0) == 1.0


@given(st.lists(st.tuples(st.dictionaries(st.integers(0, 20), st.integers(0, 1000)), MILLISECONDS), max_size=20))
def test_no_grammar_costs_less_than_it_took(seen: list[tuple[dict[int, int], float]]) -> None:
    costs = RuleCosts()
    assert all(costs.cold_ms(rules, ms) >= ms for rules, ms in seen)


def test_a_fresh_reader_goes_by_the_recorded_costs() -> None:
    assert ReaderPaces().prefer_compiling(compile_ms=5, load_ms=6)
    assert not ReaderPaces().prefer_compiling(compile_ms=6, load_ms=5)


def test_a_reader_that_compiles_faster_than_recorded_comes_to_compile() -> None:
    paces = ReaderPaces()
    for _ in range(50):
        paces.compiling.learn(recorded_ms=100, taken_ms=40)
    assert paces.prefer_compiling(compile_ms=20, load_ms=10)
    for _ in range(50):
        paces.loading.learn(recorded_ms=100, taken_ms=40)
    assert not paces.prefer_compiling(compile_ms=20, load_ms=10)


@given(st.lists(st.tuples(MILLISECONDS, MILLISECONDS), max_size=50))
def test_no_experience_turns_a_clear_case(seen: list[tuple[float, float]]) -> None:
    paces = ReaderPaces()
    for recorded, taken in seen:
        paces.compiling.learn(recorded, taken)
        paces.loading.learn(taken, recorded)
    assert not paces.prefer_compiling(compile_ms=1000, load_ms=50)


def test_what_a_compiler_has_already_tells_nothing_of_its_pace() -> None:
    pace = Pace()
    for _ in range(50):
        pace.learn(recorded_ms=100, taken_ms=0.2)
    assert pace.factor == 1.0


def test_long_work_counts_more_than_short_work() -> None:
    pace = Pace()
    pace.learn(recorded_ms=1000, taken_ms=2000)
    pace.learn(recorded_ms=1, taken_ms=30)
    assert 1.8 < pace.factor < 2.1
