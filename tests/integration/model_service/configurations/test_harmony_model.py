"""A gpt-oss of random weights keeps its answers and calls to their schemas, and vLLM's parser of Harmony reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from deployments.api.protocol import RequestReader
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested
from model_service.messages import Endpoint
from tests.integration.model_service.running_engine import MODEL, RunningEngine, running_engine
from tests.tokenizers.harmony_folder import END_OF_TEXT, save_harmony_model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "b"]},
        "text": {"type": "string", "maxLength": 12},
        "n": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["kind", "text", "n"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": SCHEMA, "strict": True}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
READER = RequestReader(MODEL, "openai", ConstraintDefaults(), reasoning_parser="openai_gptoss")
CHANNEL, END, QUOTE = "200005", "200007", "1"
TEMPERED = {"temperature": 1, "max_tokens": 800, "logit_bias": {CHANNEL: 10, END: 10, QUOTE: 10, str(END_OF_TEXT): 15}}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    folder = tmp_path_factory.mktemp("harmony")
    save_harmony_model(folder)
    arguments = {"load_format": "dummy", "reasoning_parser": "openai_gptoss"}
    with running_engine(model=str(folder), max_model_len=1024, tool_call_parser="openai", engine_args=arguments) as running:
        yield running


def choice(engine: RunningEngine, asked: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": "Say something."}], "close_at_limit": True, **asked}
    parsed = READER.read(Endpoint.CHAT, body)
    assert isinstance(parsed.requested, Requested)
    rest = {name: value for name, value in parsed.body.items() if name not in ("messages", "model")}
    found: dict[str, Any] = engine.body("Say something.", parsed.requested.spec, **rest, **fields)["choices"][0]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_is_of_its_schema_behind_any_reasoning(engine: RunningEngine, seed: int) -> None:
    found = choice(engine, {"response_format": FORMAT}, **TEMPERED, seed=seed)
    Draft202012Validator(SCHEMA).validate(json.loads(found["message"]["content"]))
    assert END_OF_TEXT not in found["token_ids"]


@pytest.mark.parametrize("seed", range(4))
def test_a_forced_call_is_valid(engine: RunningEngine, seed: int) -> None:
    asked = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    (call,) = choice(engine, asked, **TEMPERED, seed=seed)["message"]["tool_calls"]
    assert call["function"]["name"] == "look_up"
    Draft202012Validator(SCHEMA).validate(json.loads(call["function"]["arguments"]))
