"""Mask rows are counted by who can be in another state than others."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.simulation.mask_rows import MaskRows


def test_who_began_in_one_step_needs_one_row_until_they_part() -> None:
    rows = MaskRows(states=4, alike_steps=10)
    for _ in range(3):
        rows.begin("a", 5)
    rows.begin("b", 5)
    rows.begin("a", 6)
    assert rows.rows == pytest.approx(4 * (1 - (3 / 4) ** 2) + 1)
    assert rows.parting == 15
    rows.part(14)
    assert rows.parting == 15
    rows.part(15)
    assert rows.rows == pytest.approx(4 * (1 - (3 / 4) ** 4) + 1)
    assert rows.parting == 16


def test_who_ends_before_the_others_part_takes_no_row_away() -> None:
    rows = MaskRows(states=4, alike_steps=10)
    for _ in range(2):
        rows.begin("a", 0)
    rows.end("a", 0)
    assert rows.rows == pytest.approx(1)
    rows.end("a", 0)
    assert rows.rows == pytest.approx(0)
    rows.part(10)
    assert rows.parting is None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.integers(1, 30)), max_size=12), st.integers(0, 12))
def test_when_all_have_parted_each_counts_and_when_all_have_ended_none(asked: list[tuple[str, int, int]], alike_steps: int) -> None:
    rows, under_way = MaskRows(4, alike_steps), Counter[str]()
    for step in range(60):
        rows.part(step)
        for key, began, lasts in asked:
            if began == step:
                rows.begin(key, step)
                under_way[key] += 1
            if began + lasts == step:
                rows.end(key, began)
                under_way[key] -= 1
        most = sum(4 * (1 - (3 / 4) ** count) for count in under_way.values())
        assert -1e-9 < rows.rows <= most + 1e-9
        if step >= 5 + alike_steps:
            assert rows.rows == pytest.approx(most)
    assert rows.rows == pytest.approx(0)
