"""How long a call is thought to be, before anything has tokenized it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.call_sizes import REMEMBERED, CallSizes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": "x" * 400}, 100),
        ({"prompt": [1, 2, 3]}, 3),
        ({"prompt": [[1, 2], [3]]}, 3),
        ({"messages": [{"role": "user", "content": "x" * 36}]}, 10),
        ({"messages": [{"content": [{"type": "text", "text": "x" * 36}, {"image_url": {"url": "y" * 9000}}]}]}, 10),
        ({"prompt": "x" * 90_000}, 2048),
        ({"tools": [{"function": {"name": "f" * 40}}]}, 10),
        ({}, 0),
    ],
)
def test_a_prompt_has_a_quarter_as_many_tokens_as_characters(body: dict[str, Any], tokens: int) -> None:
    assert CallSizes(2048).prompt(body) == tokens


@given(st.dictionaries(st.sampled_from(["messages", "tools", "prompt", "other"]), JSON))
def test_no_body_is_too_strange_to_be_measured(body: dict[str, Any]) -> None:
    assert 0 <= CallSizes(100).prompt(body) <= 100


def test_a_body_that_is_deep_or_endless_is_measured_in_part() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    endless: list[Any] = []
    endless += [endless, "text"]
    assert CallSizes(2048).prompt({"prompt": deep}) == 0
    assert CallSizes(2048).prompt({"prompt": endless}) > 0


def test_a_grammar_forces_what_its_latest_answers_say() -> None:
    sizes = CallSizes(2048)
    assert sizes.forced("key") == 0
    sizes.answered("key", '{"usage":{"completion_tokens_details":{"forced_tokens":50}}}')
    assert (sizes.forced("key"), sizes.forced("other")) == (50, 0)
    for _ in range(30):
        sizes.answered("key", 'data: {"usage":{"completion_tokens_details":{"forced_tokens": 10}}}\n\n')
    assert sizes.forced("key") == 10


def test_text_of_the_answer_is_no_usage_figure() -> None:
    sizes = CallSizes(2048)
    sizes.answered("key", r'{"choices":[{"message":{"content":"{\"forced_tokens\":7}"}}]}')
    assert sizes.forced("key") == 0


def test_only_the_grammars_that_were_last_used_are_remembered() -> None:
    sizes = CallSizes(2048)
    for number in range(REMEMBERED + 1):
        sizes.answered(str(number), '"forced_tokens":5')
    assert (sizes.forced("0"), sizes.forced("1")) == (0, 5)
