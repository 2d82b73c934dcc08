"""Streams of required calls are told as vLLM tells them, without reading the answer again for each token."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\[]{}:, é\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='ab"', max_size=3), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(st.fixed_dictionaries({"name": st.text(alphabet='fg"\\', max_size=4), "parameters": VALUES}), max_size=4)
TEXTS = st.builds(json.dumps, CALLS, indent=st.sampled_from([None, 1])) | st.builds(json.dumps, VALUES)


@pytest.fixture(scope="module")
def stock() -> Any:
    """vLLM's own function."""
    from vllm.tool_parsers.streaming import extract_required_tool_call_streaming  # vLLM reads the environment when it is imported

    return extract_required_tool_call_streaming


def extracting() -> Any:
    from model_service.engine.frontend.required_tool_calls import RequiredToolCallStreams

    return RequiredToolCallStreams().extract


def told(extract: Any, text: str, ends: list[int]) -> list[Any]:
    """Of each piece of the text, without ids, which are drawn."""
    found = []
    for begin, end in zip([0, *ends], ends, strict=False):
        delta, has_name = extract(previous_text=text[:begin], current_text=text[:end], tool_call_idx=0, tool_call_id_type="random")
        calls = [call.model_dump(exclude={"id"}) for call in delta.tool_calls] if delta is not None else None
        found.append((calls, has_name))
    return found


@given(text=TEXTS, data=st.data())
def test_they_are_told_as_by_vllm(stock: Any, text: str, data: st.DataObject) -> None:
    ends = sorted(data.draw(st.sets(st.integers(1, len(text)), min_size=1)) | {len(text)})
    assert told(extracting(), text, ends) == told(stock, text, ends)


@pytest.mark.parametrize("text", ["", "no array", '[{"name": "f", "parameters": {}}] and more [{"name": "g"', '{"name": {"name": 1}}'])
def test_so_is_what_is_none(stock: Any, text: str) -> None:
    ends = list(range(1, len(text) + 1))
    assert told(extracting(), text, ends) == told(stock, text, ends)


def test_what_was_read_is_not_read_again() -> None:
    from model_service.engine.frontend.required_tool_calls import ToolCallScan

    text = json.dumps([{"name": "f", "parameters": {"a": "x" * 50}}])
    whole = ToolCallScan().extended(text)
    other = "~" * len(text)  # nothing of it is looked at
    assert whole.extended(other).spans == whole.spans


def test_streams_alike_share_what_was_read_and_do_not_disturb_each_other(stock: Any) -> None:
    extract, text = extracting(), json.dumps([{"name": "f", "parameters": {"a": 1}}])
    first = told(extract, text, [5, 20, len(text)])
    assert told(extract, text, [5, 20, len(text)]) == first
    other = text.replace("1", "2")
    assert told(extract, other, [5, 20, len(other)]) == told(stock, other, [5, 20, len(other)])
