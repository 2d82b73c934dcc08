"""Where the leaves of a JSON text stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.api.confidence.leaves import LONGEST_POINTER, MOST_LEAVES, Leaf, find_leaves
from grammar_service.schema.pointer import join

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20)
CONTAINERS = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4)


def flat(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not value or not isinstance(value, dict | list):
        yield pointer, value
    for step, inner in steps:
        yield from flat(inner, join(pointer, step))


@given(value=CONTAINERS, indent=st.sampled_from([None, 1]))
def test_every_leaf_stands_where_it_is_written(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert [(leaf.pointer, json.JSONDecoder().raw_decode(text, leaf.start)[0]) for leaf in find_leaves(text)] == list(flat(value))


@given(value=CONTAINERS, cut=st.integers(0, 100))
def test_a_text_that_is_cut_off_has_the_leaves_that_have_come(value: Any, cut: int) -> None:
    text = json.dumps(value)
    whole, found = {leaf.pointer: leaf.start for leaf in find_leaves(text)}, find_leaves(text[: max(1, len(text) - cut)])
    assert all(whole.get(leaf.pointer, leaf.start) == leaf.start for leaf in found)


@pytest.mark.parametrize("text", ["red", '"red"', "12", "", "true, or not"])
def test_another_text_is_one_leaf(text: str) -> None:
    assert find_leaves(text) == [Leaf("", 0, len(text) + 1)]


def test_a_number_ends_with_what_ends_it() -> None:
    assert find_leaves('{"a": 12, "b": 3') == [Leaf("/a", 6, 9), Leaf("/b", 15, 17)]


def test_there_are_bounds() -> None:
    assert len(find_leaves(json.dumps([0] * 2 * MOST_LEAVES))) == MOST_LEAVES
    deep = "[" * LONGEST_POINTER + "1" + "]" * LONGEST_POINTER
    assert [leaf.pointer for leaf in find_leaves(f"[{deep}, 2]")] == ["/1"]
    assert find_leaves("[" * 100_000) == []
