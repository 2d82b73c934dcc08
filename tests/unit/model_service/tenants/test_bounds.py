"""Of a step, light tenants get what they ask for; heavy ones what hardly delays them, and always some."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_service.tenants.bounds import LEAST_ROWS, LEAST_TOKENS, SPARE, Work, bounded, heavy_tenants, longest_rested
from model_service.tenants.step_cost import FIT_EVERY, StepCost

US = 1000


def cost_of(base_us: float, row_us: float, token_us: float) -> StepCost:
    """As learnt from steps that took exactly so long."""
    cost = StepCost(64, 2048)
    for number in range(2 * FIT_EVERY):
        rows, tokens = 1 + number % 60, (number * 37) % 500
        cost.add(rows, tokens, round(US * (base_us + row_us * rows + token_us * tokens)))
    return cost


work = st.builds(Work, st.integers(0, 8), st.integers(0, 400))
rows = st.lists(st.integers(1, 40), max_size=60)
costs = st.builds(cost_of, st.floats(100, 20_000), st.floats(0, 500), st.floats(0, 500))


@given(light=work, heavy=rows, prompts=st.integers(0, 4000), cost=costs)
def test_the_heavy_get_some_and_no_more_than_they_have(light: Work, heavy: list[int], prompts: int, cost: StepCost) -> None:
    may = bounded(light, light, heavy, prompts, cost)
    assert math.ceil(LEAST_ROWS * len(heavy)) <= may.rows <= len(heavy)
    assert min(LEAST_TOKENS, prompts) <= may.tokens <= prompts


@pytest.mark.parametrize("prompts", [0, 100])
def test_the_heavy_get_some_where_tokens_are_thought_to_cost_nothing_and_rows_much(prompts: int) -> None:
    """As a tenant can make it seem: by slow masks in steps without other tokens, and prompts in others."""
    cost = cost_of(100, 500, 0)
    cost.token = 0.0
    assert bounded(Work(1, 0), Work(1, 0), [1] * 56, prompts, cost) == Work(4, min(LEAST_TOKENS, prompts))


@given(light=work, heavy=rows, prompts=st.integers(0, 4000), cost=costs)
def test_what_goes_over_the_time_that_is_theirs_is_the_least_that_they_get(
    light: Work, heavy: list[int], prompts: int, cost: StepCost
) -> None:
    may = bounded(light, light, heavy, prompts, cost)
    least = math.ceil(LEAST_ROWS * len(heavy))
    rows_ns = sum(cost.row + cost.token * (tokens - 1) for tokens in heavy[: may.rows])
    spare = SPARE * cost.of(light.rows, light.tokens) * (1 + 1e-9)
    assert rows_ns <= spare or may.rows == least
    assert rows_ns + cost.token * may.tokens <= spare or may.rows == least or may.tokens <= LEAST_TOKENS


@given(light=work, heavy=rows, prompts=st.integers(0, 4000), cost=costs)
def test_no_time_that_is_theirs_is_left_while_they_have_work(light: Work, heavy: list[int], prompts: int, cost: StepCost) -> None:
    may = bounded(light, light, heavy, prompts, cost)
    rows_ns = sum(cost.row + cost.token * (tokens - 1) for tokens in heavy[: may.rows])
    left = SPARE * cost.of(light.rows, light.tokens) - rows_ns - cost.token * may.tokens
    if may.tokens < prompts:
        assert left <= cost.token * (1 + 1e-9)
    elif may.rows < len(heavy):
        assert left <= cost.row + cost.token * (heavy[may.rows] - 1) + 1e-3


def test_where_steps_hardly_grow_nothing_is_bounded() -> None:
    assert bounded(Work(4, 0), Work(4, 0), [1] * 56, 0, cost_of(10_000, 20, 20)) == Work(56, 0)


def test_while_no_light_one_asks_the_heavy_have_its_time_as_well() -> None:
    cost = cost_of(1000, 100, 100)
    assert bounded(Work(0, 0), Work(10, 0), [1] * 56, 0, cost).rows == 16
    assert bounded(Work(10, 0), Work(10, 0), [1] * 56, 0, cost).rows == 6


def test_who_has_more_than_an_eighth_of_the_seats_is_heavy() -> None:
    assert heavy_tenants({"flood": 9, "two": 8, "three": 1}, 64) == {"flood"}
    assert heavy_tenants({"flood": 2, "two": 1}, 4) == {"flood"}


@given(number=st.integers(1, 60), share=st.integers(1, 60))
def test_no_row_rests_longer_than_all_others_take_their_turns(number: int, share: int) -> None:
    names, ran = [str(one) for one in range(number)], dict[str, int]()
    turns = math.ceil(number / share)
    for step in range(1, 3 * turns + 1):
        ran.update(dict.fromkeys(longest_rested(names, ran)[:share], step))
        assert step < turns or min(ran.get(name, 0) for name in names) > step - turns


@pytest.mark.parametrize("figures", [(5000, 60, 40), (10_000, 0, 30), (2000, 100, 0)])
def test_what_a_step_takes_is_learnt(figures: tuple[float, float, float]) -> None:
    cost = cost_of(*figures)
    assert [cost.base / US, cost.row / US, cost.token / US] == pytest.approx(figures, rel=0.01, abs=0.5)


def test_a_step_that_was_held_up_counts_for_little() -> None:
    cost = cost_of(5000, 60, 40)
    for _ in range(FIT_EVERY):
        cost.add(8, 0, (10_000_000 if cost.is_known and _ == 0 else 5480) * US)
    assert cost.of(8, 0) / US == pytest.approx(5480, rel=0.1)


def test_where_all_steps_are_alike_each_part_has_some_of_it() -> None:
    cost = StepCost(64, 2048)
    for _ in range(FIT_EVERY):
        cost.add(64, 0, 6400 * US)
    assert cost.is_known
    assert cost.of(64, 0) / US == pytest.approx(6400, rel=0.01)
    assert cost.base > 0
    assert cost.row > 0
