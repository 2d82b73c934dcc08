"""Whatever value a field has, a request is translated or refused, and what comes of it is plain JSON."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.api.translation import messages_request, responses_request
from deployments.errors import ApiError

WORDS = st.sampled_from(
    (
        "type text role user assistant content name input tools function function_call function_call_output reasoning message summary id "
        "json_schema schema format image source base64 url data tool_use tool_result thinking enabled budget_tokens auto tool any "
        "allowed_tools mode effort system call_id output arguments input_schema strict custom"
    ).split()
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5),
    max_leaves=20,
)
MESSAGES = "messages system stop_sequences tools tool_choice thinking output_config output_format stream stream_options n".split()
RESPONSES = (
    "input instructions text tools tool_choice reasoning max_output_tokens top_logprobs include truncation stream messages prompt n "
    "conversation previous_response_id store background stream_options"
).split()


@pytest.mark.parametrize("field", MESSAGES)
@given(value=JSON)
def test_of_a_message(field: str, value: Any) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": value}], field: value}
    with suppress(ApiError):
        json.dumps(messages_request.chat_options(body, reasons=True))
        json.dumps(messages_request.messages_of(body))


@pytest.mark.parametrize("field", RESPONSES)
@given(value=JSON)
def test_of_a_response(field: str, value: Any) -> None:
    tools = [{"type": "function", "name": value}, {"type": "function", "name": "f"}]
    body = {"input": "hi", "tools": tools, "tool_choice": {"type": "allowed_tools", "tools": [{"name": "f"}]}, field: value}
    with suppress(ApiError):
        json.dumps(responses_request.chat_options(body, strict=True))
        json.dumps(responses_request.messages_of(body, [value], responses_request.input_items(body)))
