"""The official `openai` client works unchanged."""

from __future__ import annotations

import json
from typing import Any, Literal

import jsonschema
import openai
import pytest
from pydantic import BaseModel

from tests.e2e.service import MODEL, Service

QUESTION = "Extract name, age, city as JSON.\n\nMeet Clara Novak. Lives in Lisbon. The person is 34 years old."
MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                "required": ["name", "age"],
                "additionalProperties": False,
            },
        },
    }
    for name in ("record_person", "record_order")
]


class Person(BaseModel):
    name: str
    age: int
    city: str


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]
    reasons: list[Literal["cheap", "fast", "far"]]


def test_the_model_is_listed(service: Service) -> None:
    client = service.client()
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    assert client.models.retrieve(MODEL).model_extra == {"root": MODEL, "parent": None, "max_model_len": 2048}
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_parse_gives_a_pydantic_instance(service: Service) -> None:
    answer = service.client().chat.completions.parse(model=MODEL, messages=MESSAGES, response_format=Person, max_tokens=64, temperature=0)
    assert answer.choices[0].message.parsed == Person(name="Clara Novak", age=34, city="Lisbon")
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_schema_that_the_model_has_never_seen_is_obeyed(service: Service) -> None:
    answer = service.client().chat.completions.parse(
        model=MODEL, messages=[{"role": "user", "content": "Is it good?"}], response_format=Verdict, max_tokens=256, temperature=1, seed=3
    )
    assert answer.choices[0].message.parsed is not None


def test_streamed_pieces_are_the_whole_answer(service: Service) -> None:
    fields: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "max_tokens": 64, "temperature": 0}
    fields["response_format"] = {"type": "json_schema", "json_schema": {"name": "p", "schema": Person.model_json_schema()}}
    whole = service.client().chat.completions.create(**fields).choices[0].message.content
    chunks = list(service.client().chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0
    letters: dict[str, Any] = {**fields, "response_format": None, "extra_body": {"guided_regex": "[a-z]{60}"}}
    pieces = [chunk for chunk in service.client().chat.completions.create(**letters, stream=True) if chunk.choices[0].delta.content]
    assert len(pieces) > 1


def test_several_choices_are_all_valid_and_a_seed_repeats_them(service: Service) -> None:
    def texts() -> list[str]:
        answer = service.client().chat.completions.create(
            model=MODEL,
            messages=MESSAGES,
            n=3,
            seed=11,
            temperature=1,
            max_tokens=64,
            extra_body={"structured_outputs": {"regex": "[a-z]{3,6}"}},
        )
        return [choice.message.content or "" for choice in answer.choices]

    first = texts()
    assert len(first) == 3
    assert all(text.isalpha() and 3 <= len(text) <= 6 for text in first)
    assert texts() == first


def test_logprobs_cover_every_token(service: Service) -> None:
    answer = service.client().chat.completions.create(
        model=MODEL, messages=MESSAGES, max_tokens=16, logprobs=True, top_logprobs=2, extra_body={"guided_choice": ["alpha", "beta"]}
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert "".join(item.token for item in logprobs.content).removesuffix("<|end|>") == answer.choices[0].message.content


def test_max_tokens_and_stop_cut_the_answer(service: Service) -> None:
    client = service.client()
    cut = client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=2, extra_body={"guided_regex": "[a-z]{40}"})
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage is not None
    assert cut.usage.completion_tokens == 2
    stopped = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, max_tokens=32, stop=["b"], extra_body={"guided_regex": "aaab+c"}
    )
    assert (stopped.choices[0].finish_reason, stopped.choices[0].message.content) == ("stop", "aaa")


@pytest.mark.parametrize("stream", [False, True])
def test_required_tools_are_called_with_valid_arguments(service: Service, stream: bool) -> None:
    call = called(service, stream, tool_choice="required", parallel_tool_calls=False)
    assert call["name"] in ("record_person", "record_order")
    jsonschema.validate(json.loads(call["arguments"]), TOOLS[0]["function"]["parameters"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_named_tool_is_called(service: Service, stream: bool) -> None:
    call = called(service, stream, tool_choice={"type": "function", "function": {"name": "record_order"}})
    assert call["name"] == "record_order"
    jsonschema.validate(json.loads(call["arguments"]), TOOLS[0]["function"]["parameters"])


@pytest.mark.parametrize("strict", [False, True])
def test_auto_tools_are_called_when_the_model_likes(service: Service, strict: bool) -> None:
    text = "Record this.\n\nMeet Clara Novak. The person is 34 years old. Lives in Lisbon."
    tools: list[Any] = [{**tool, "function": {**tool["function"], "strict": strict}} for tool in TOOLS]
    answer = service.client().chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": text}], tools=tools, max_tokens=96, temperature=0
    )
    calls = answer.choices[0].message.tool_calls
    assert calls, answer.choices[0].message
    assert calls[0].type == "function"
    assert json.loads(calls[0].function.arguments) == {"name": "Clara Novak", "age": 34}
    assert answer.choices[0].finish_reason == "tool_calls"


def called(service: Service, stream: bool, **fields: Any) -> dict[str, str]:
    """The one call of the answer, with its arguments as text."""
    client = service.client()
    common: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "tools": TOOLS, "max_tokens": 128, "temperature": 0, **fields}
    if not stream:
        calls = client.chat.completions.create(**common).choices[0].message.tool_calls
        assert calls is not None
        assert len(calls) == 1
        return {"name": calls[0].function.name, "arguments": calls[0].function.arguments}
    found = {"name": "", "arguments": ""}
    for chunk in client.chat.completions.create(**common, stream=True):
        for call in chunk.choices[0].delta.tool_calls or []:
            found["name"] += call.function.name or ""
            found["arguments"] += call.function.arguments or ""
    return found


def test_the_completions_endpoint_is_constrained_too(service: Service) -> None:
    answer = service.client().completions.create(
        model=MODEL, prompt=["One:", "Two:"], max_tokens=16, extra_body={"structured_outputs": {"choice": ["red", "green"]}}
    )
    assert len(answer.choices) == 2
    assert all(choice.text in ("red", "green") for choice in answer.choices)


def test_streamed_completions_are_the_whole_ones(service: Service) -> None:
    """Of several prompts, each with several choices."""
    asked: dict[str, Any] = {"model": MODEL, "prompt": ["One:", "Two:"], "n": 2, "max_tokens": 16, "seed": 5}
    constrained: Any = {"structured_outputs": {"regex": "[a-f]{9}"}}
    texts = dict.fromkeys(range(4), "")
    for event in service.client().completions.create(**asked, extra_body=constrained, stream=True):
        for choice in event.choices:
            texts[choice.index] += choice.text
    whole = service.client().completions.create(**asked, extra_body=constrained)
    assert texts == {choice.index: choice.text for choice in whole.choices}
    assert {len(text) for text in texts.values()} == {9}


def test_a_tool_without_parameters_is_called_without_arguments(service: Service) -> None:
    tool: Any = {"type": "function", "function": {"name": "now", "strict": True}}
    message = (
        service.client().chat.completions.create(model=MODEL, messages=MESSAGES, tools=[tool], tool_choice="required").choices[0].message
    )
    assert message.tool_calls
    (call, *_) = message.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("now", {})
