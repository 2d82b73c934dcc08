"""The package `openai`, chat completions and responses."""

from __future__ import annotations

import json

import openai
import pytest
from conftest import QUESTION, Person

MESSAGES = [{"role": "user", "content": QUESTION}]
SCHEMA = Person.model_json_schema() | {"additionalProperties": False}


@pytest.fixture
def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, max_retries=0)


def test_a_chat_completion_is_parsed(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.parse(model=model, messages=MESSAGES, response_format=Person, temperature=0, max_tokens=128)
    assert isinstance(answer.choices[0].message.parsed, Person)


def test_a_chat_completion_is_parsed_while_it_streams(client: openai.OpenAI, model: str) -> None:
    asked = {"model": model, "messages": MESSAGES, "response_format": Person, "temperature": 0, "max_tokens": 128}
    with client.chat.completions.stream(**asked) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_completion()
    assert {"content.delta", "content.done", "chunk"} <= kinds
    assert isinstance(answer.choices[0].message.parsed, Person)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "record"}}])
def test_a_tool_is_called(client: openai.OpenAI, model: str, choice: object) -> None:
    tool = {"type": "function", "function": {"name": "record", "parameters": SCHEMA, "strict": True}}
    answer = client.chat.completions.create(model=model, messages=MESSAGES, tools=[tool], tool_choice=choice, parallel_tool_calls=False)
    (call,) = answer.choices[0].message.tool_calls
    assert Person(**json.loads(call.function.arguments))


def test_a_json_object_is_one(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=MESSAGES, response_format={"type": "json_object"}, max_tokens=128)
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)


def test_a_response_is_parsed(client: openai.OpenAI, model: str) -> None:
    asked = {"model": model, "input": QUESTION, "text_format": Person, "temperature": 0, "max_output_tokens": 128}
    assert isinstance(client.responses.parse(**asked).output_parsed, Person)
    with client.responses.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        assert isinstance(stream.get_final_response().output_parsed, Person)
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"


async def test_the_asynchronous_client_streams(url: str, model: str) -> None:
    async with openai.AsyncOpenAI(base_url=url, max_retries=0) as client:
        stream = await client.chat.completions.create(model=model, messages=MESSAGES, stream=True, max_tokens=8, temperature=0)
        assert [chunk async for chunk in stream][-1].choices[0].finish_reason == "length"
