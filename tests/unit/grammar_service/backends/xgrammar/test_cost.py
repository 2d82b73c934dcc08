from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.backends.xgrammar.cost import DEAR_MS, RuleCosts, TableSize, expected_load_ms, worth_tables

MILLISECONDS = st.floats(0.01, 60_000)
SIZES = st.builds(TableSize, st.integers(0, 10**8), st.integers(0, 10**8))
NO_BOUND = 1 << 62


@given(MILLISECONDS, SIZES)
def test_tables_are_chosen_where_compiling_is_dear_and_reading_is_cheaper(compile_ms: float, size: TableSize) -> None:
    is_dear, reads_sooner = compile_ms >= DEAR_MS, expected_load_ms(size) < compile_ms
    assert worth_tables(compile_ms, size, NO_BOUND) == (is_dear and reads_sooner)


@given(SIZES, st.integers(0, 10**9))
def test_tables_over_the_bound_are_never_chosen(size: TableSize, bound: int) -> None:
    if size.total > bound:
        assert not worth_tables(1e9, size, bound)


@given(SIZES)
def test_larger_automata_take_longer_to_read(size: TableSize) -> None:
    assert 0 <= expected_load_ms(size) < expected_load_ms(TableSize(size.automata + 1, size.masks))


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
