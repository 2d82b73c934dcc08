"""Constraints are written as `json.dumps` does, and other threads run meanwhile."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.constraints.json_writer import AT_ONCE, write_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    yield
    sys.setswitchinterval(interval)


@given(VALUES)
def test_the_text_is_that_of_json(value: Any) -> None:
    large = [value, [0] * AT_ONCE]
    assert write_json(value) == json.dumps(value)
    assert write_json(large) == json.dumps(large)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("value", [[5e-99] * 200_000, {"enum": [[0]] * 100_000}, {str(each): 0.1 for each in range(100_000)}])
def test_other_threads_run_while_a_large_value_is_written(value: Any) -> None:
    runs, begun, is_over = 0, Event(), Event()

    def run() -> None:
        nonlocal runs
        while not is_over.is_set():
            runs += 1
            begun.set()

    other = Thread(target=run)
    other.start()
    begun.wait()
    before = runs
    write_json(value)
    after = runs
    is_over.set()
    other.join()
    assert after > before + 1000
