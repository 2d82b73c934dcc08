"""A model with the marks of Kimi K3 keeps its answers and calls to their schemas, each in its channel, and vLLM's parser reads them."""

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
from tests.integration.model_service.configurations.made_models import kimi_model
from tests.integration.model_service.running_engine import MODEL, RunningEngine, running_engine

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "<|close|>response<|sep|>"]},
        "text": {"type": "string", "maxLength": 12},
        "n": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["kind", "text", "n"],
    "additionalProperties": False,
}
CALLED = {**SCHEMA, "properties": {**SCHEMA["properties"], "kind": {"enum": ["a", "b"]}}}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": CALLED, "strict": True}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
READER = RequestReader(MODEL, "kimi_k3", ConstraintDefaults(), reasoning_parser="kimi_k3")
OPEN, CLOSE = "2046", "2047"
TEMPERED = {"temperature": 1, "max_tokens": 400, "thinking_token_budget": 20, "logit_bias": {OPEN: 10, CLOSE: 5}, "close_at_limit": True}
SEEDS = pytest.mark.parametrize("seed", range(4))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    model = str(kimi_model(tmp_path_factory.mktemp("kimi") / "model"))
    with running_engine(model=model, tool_call_parser="kimi_k3", engine_args={"reasoning_parser": "kimi_k3"}) as running:
        yield running


def asked(body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The constraint, and the rest of the request as the engine gets it."""
    parsed = READER.read(Endpoint.CHAT, {"messages": [{"role": "user", "content": "Say something."}], **TEMPERED, **body})
    assert isinstance(parsed.requested, Requested)
    return parsed.requested.spec, {name: value for name, value in parsed.body.items() if name not in ("messages", "model")}


def message(engine: RunningEngine, body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    spec, rest = asked(body)
    choice = engine.body("Say something.", spec, **rest, **fields)["choices"][0]
    assert choice["finish_reason"] in ("stop", "tool_calls")
    found: dict[str, Any] = choice["message"]
    return found


@SEEDS
@pytest.mark.parametrize("thinks", [True, False])
def test_an_answer_is_of_its_schema_in_its_channel(engine: RunningEngine, seed: int, thinks: bool) -> None:
    body, told = {"response_format": FORMAT, "seed": seed}, dict[str, Any](chat_template_kwargs={"thinking": thinks})
    found = message(engine, body, **told)
    Draft202012Validator(SCHEMA).validate(json.loads(found["content"]))
    assert thinks or not found["reasoning"]
    spec, rest = asked(body)
    deltas = [event["choices"][0]["delta"] for event in engine.events("Say something.", spec, **rest, **told) if event["choices"]]
    Draft202012Validator(SCHEMA).validate(json.loads("".join(delta.get("content") or "" for delta in deltas)))


@SEEDS
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look_up"}}])
def test_a_forced_call_is_valid(engine: RunningEngine, seed: int, choice: Any) -> None:
    found = message(engine, {"tools": [TOOL], "tool_choice": choice, "parallel_tool_calls": False, "seed": seed})
    (call,) = found["tool_calls"]
    assert call["function"]["name"] == "look_up"
    Draft202012Validator(CALLED).validate(json.loads(call["function"]["arguments"]))


@SEEDS
def test_a_call_that_comes_is_valid_and_so_is_an_answer_in_its_place(engine: RunningEngine, seed: int) -> None:
    found = message(engine, {"tools": [TOOL], "response_format": FORMAT, "seed": seed})
    for call in found["tool_calls"]:
        Draft202012Validator(CALLED).validate(json.loads(call["function"]["arguments"]))
    if not found["tool_calls"]:
        Draft202012Validator(SCHEMA).validate(json.loads(found["content"]))
