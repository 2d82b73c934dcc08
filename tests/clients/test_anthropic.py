"""The package `anthropic`."""

from __future__ import annotations

import anthropic
import pytest
from conftest import QUESTION, Person

SCHEMA = Person.model_json_schema() | {"additionalProperties": False}
TOOL = {"name": "record", "description": "Record a person.", "input_schema": SCHEMA, "strict": True}


@pytest.fixture
def client(root: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=root, max_retries=0)


def test_a_message_is_parsed(client: anthropic.Anthropic, model: str) -> None:
    asked = {"model": model, "max_tokens": 128, "messages": [{"role": "user", "content": QUESTION}], "extra_body": {"temperature": 0}}
    assert isinstance(client.messages.parse(**asked, output_format=Person).parsed_output, Person)


def test_a_tool_is_used(client: anthropic.Anthropic, model: str) -> None:
    asked = {"model": model, "max_tokens": 128, "messages": [{"role": "user", "content": QUESTION}], "extra_body": {"temperature": 0}}
    message = client.messages.create(**asked, tools=[TOOL], tool_choice={"type": "tool", "name": "record"})
    (block,) = message.content
    assert message.stop_reason == "tool_use"
    assert Person(**block.input)
    with client.messages.stream(**asked, tools=[TOOL], tool_choice={"type": "any"}) as stream:
        assert Person(**stream.get_final_message().content[0].input)


def test_tokens_are_counted(client: anthropic.Anthropic, model: str) -> None:
    assert client.messages.count_tokens(model=model, messages=[{"role": "user", "content": QUESTION}]).input_tokens > 8
