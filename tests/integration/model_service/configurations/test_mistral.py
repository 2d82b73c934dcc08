"""A model in Mistral's own files, whose tokenizer vLLM reads with `mistral_common`, obeys constraints, and its tools are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.running_engine import RunningEngine, running_engine
from tests.tokenizers.mistral_folder import save_sentencepiece_model, save_tekken_model

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 10}, "kind": {"enum": ["é", "[INST]", "plain"]}, "n": {"type": "integer"}},
    "required": ["name", "kind", "n"],
    "additionalProperties": False,
}
SPEC = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA))
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}


@pytest.fixture(scope="module", params=[save_tekken_model, save_sentencepiece_model], ids=["tekken", "sentencepiece"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    save: Callable[[Path], Path] = request.param
    folder = save(tmp_path_factory.mktemp("mistral"))
    with running_engine(model=str(folder), max_model_len=512, tool_call_parser="mistral", engine_args={"load_format": "dummy"}) as running:
        yield running


def test_answers_of_random_weights_are_valid_and_jump(engine: RunningEngine) -> None:
    requests = [("Say something.", SPEC, {"temperature": 1, "seed": seed, "max_tokens": 200}) for seed in range(8)]
    ended = [answer for answer in engine.ask_all(requests) if answer.finish_reason == "stop"]
    assert ended
    for answer in ended:
        Draft202012Validator(SCHEMA).validate(json.loads(answer.text))
        assert answer.forced > 5


def test_a_chat_without_a_constraint_is_answered_with_tools_and_without(engine: RunningEngine) -> None:
    assert engine.ask("Say something.", max_tokens=5).usage["completion_tokens"] == 5
    for choice in ("auto", "none"):
        answer = engine.ask("Say something.", max_tokens=5, tools=[TOOL], tool_choice=choice)
        assert answer.usage["completion_tokens"] == 5
