"""Models whose reasoning stands between marks that vLLM does not keep to reason, and keep to the grammar behind that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.configurations.made_models import mistral_model, thinking_model
from tests.integration.model_service.configurations.test_pass_through import QUESTION, SPEC, is_of_the_schema
from tests.integration.model_service.running_engine import SETTINGS, RunningEngine, running_engine

BEGIN = "Here is my thought process:"
USER = {"role": "user", "content": QUESTION}
ASKED: dict[str, dict[str, Any]] = {
    "granite": {"messages": [{"role": "system", "content": f"Write down your thoughts after '{BEGIN}'."}, USER]},
    "mistral": {"reasoning_effort": "high"},
    "hunyuan_a13b": {},
    "minimax_m2_append_think": {},
    "muse_glimmer": {},
    "minicpmv": {},
}
"""What makes the model reason, by vLLM's name of the parser."""
PREFILLED: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": True}
ENDED: dict[str, dict[str, Any]] = {
    "granite": {},
    "mistral": {},
    **{
        name: {"messages": [USER, {"role": "assistant", "content": text}], **PREFILLED}
        for name, text in {
            "hunyuan_a13b": "<think>\n\n</think>\n",
            "minimax_m2_append_think": "<think>\n</think>",
            "muse_glimmer": " to=user<|message|>",
            "minicpmv": "<think>\n\n</think>\n\n",
        }.items()
    },
}
"""What makes it not reason."""


@pytest.fixture(scope="module", params=ASKED)
def parser(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def reasoning(parser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    folder: Path = tmp_path_factory.mktemp(parser) / "model"
    made = {"mistral": mistral_model, "minicpmv": thinking_model}
    model = str(made[parser](folder)) if parser in made else SETTINGS.model
    with running_engine(model=model, engine_args={"reasoning_parser": parser}) as engine:
        yield engine


def told(engine: RunningEngine, spec: GrammarSpec = SPEC, **fields: Any) -> tuple[str, str]:
    """Content and reasoning, the same whole and streamed."""
    fields = {"max_tokens": 160, **fields}
    body = engine.body(QUESTION, spec, **fields)
    events = engine.events(QUESTION, spec, stream_options={"include_usage": True}, **fields)
    choice = body["choices"][0]
    assert choice["finish_reason"] == "stop"
    whole = choice["message"]["content"] or "", choice["message"]["reasoning"] or ""
    deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
    streamed = tuple("".join(delta.get(field) or "" for delta in deltas) for field in ("content", "reasoning"))
    assert whole == streamed
    counted, streamed_count = (one["usage"]["completion_tokens_details"].get("reasoning_tokens", 0) for one in (body, events[-1]))
    assert counted == streamed_count
    assert counted or not whole[1]
    return whole


def test_an_answer_stands_behind_reasoning_that_ends(parser: str, reasoning: RunningEngine) -> None:
    content, thoughts = told(reasoning, **ASKED[parser])
    assert is_of_the_schema(content)
    assert thoughts
    assert BEGIN not in thoughts
    assert "<|message|>" not in thoughts


def test_where_a_prompt_asks_for_none_it_begins_at_once(parser: str, reasoning: RunningEngine) -> None:
    content, thoughts = told(reasoning, **ENDED[parser])
    assert is_of_the_schema(content)
    assert not thoughts


def test_what_an_answer_has_of_marks_is_its_own(parser: str, reasoning: RunningEngine) -> None:
    text = r'"[THINK] Here is my response: </think>\n</answer> [/THINK] to=user<|message|> <|eot|> $a\n`"'
    if parser == "minicpmv":
        text = text.replace("</think>", "")  # vLLM reads it, and takes that out
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps({"const": json.loads(text)}))
    content, thoughts = told(reasoning, spec, max_tokens=240, **ASKED[parser])
    assert content == text
    assert thoughts


def test_reasoning_that_is_not_wanted_is_left_out(parser: str, reasoning: RunningEngine) -> None:
    content, thoughts = told(reasoning, include_reasoning=False, **ASKED[parser])
    assert is_of_the_schema(content)
    assert not thoughts


def test_without_a_constraint_it_answers_as_ever(parser: str, reasoning: RunningEngine) -> None:
    assert reasoning.ask(QUESTION, None, max_tokens=8, **ASKED[parser]).usage["completion_tokens"] > 0


def test_marks_of_several_tokens_are_written_once_beside_drafts() -> None:
    ngrams = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4, "prompt_lookup_min": 1}
    with running_engine(engine_args={"reasoning_parser": "granite", "speculative_config": ngrams}) as engine:
        content, thoughts = told(engine, **ASKED["granite"])
        assert is_of_the_schema(content)
        assert thoughts
        assert BEGIN not in thoughts
