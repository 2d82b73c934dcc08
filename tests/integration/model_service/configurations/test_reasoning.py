"""A model that reasons first does so for a while, and then always keeps to the grammar, whatever it would have liked to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from model_service.engine.reasoning.masks import EndMarks
from tests.integration.model_service.configurations.made_models import thinking_model
from tests.integration.model_service.configurations.test_pass_through import QUESTION, SPEC, is_of_the_schema
from tests.integration.model_service.masks.mask_requests import await_masks
from tests.integration.model_service.running_broadcaster import running_broadcaster
from tests.integration.model_service.running_engine import RunningEngine, running_engine

CALL, END, BEGINS, ENDS = 0, 1, 2046, 2047
"""The tokens that begin a call, end the answer, begin and end the reasoning."""
MOST = 96
"""Tokens of an answer."""


@pytest.fixture(scope="module", params=["qwen3", "deepseek_r1"])
def thinking(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """One of them gets its masks from a broadcaster."""
    model = str(thinking_model(tmp_path_factory.mktemp("thinking") / "model"))
    arguments, name = {"reasoning_parser": request.param}, f"maskcast-reasoning-test-{uuid4().hex}"
    if request.param == "deepseek_r1":
        with running_engine(model=model, engine_args=arguments) as engine:
            yield engine
        return
    with running_broadcaster(name), running_engine(model=model, engine_args=arguments, mask_socket=name) as engine:
        await_masks(engine)
        yield engine


def message(engine: RunningEngine, question: str = QUESTION, **fields: Any) -> dict[str, Any]:
    choice = engine.body(question, SPEC, max_tokens=MOST, **fields)["choices"][0]
    assert choice["finish_reason"] == "stop"
    found: dict[str, Any] = choice["message"]
    return found


def test_reasoning_that_would_not_end_has_half_of_the_tokens(thinking: RunningEngine) -> None:
    answer = thinking.ask(QUESTION, SPEC, max_tokens=MOST, logit_bias={str(ENDS): -100})
    assert answer.tokens.index(ENDS) == MOST // 2
    assert is_of_the_schema(answer.text)


def test_or_as_many_as_the_client_says(thinking: RunningEngine) -> None:
    answer = thinking.ask(QUESTION, SPEC, max_tokens=MOST, thinking_token_budget=8, logit_bias={str(BEGINS): 100, str(ENDS): -100})
    assert answer.tokens.index(ENDS) <= 9
    assert is_of_the_schema(answer.text)


def test_an_answer_does_not_end_within_its_reasoning(thinking: RunningEngine) -> None:
    told = message(thinking, logit_bias={str(END): 100})
    assert is_of_the_schema(told["content"])
    assert told["reasoning"]


def test_nor_does_a_tool_call_begin_there(thinking: RunningEngine) -> None:
    """Which the parser of Qwen3 takes for the end of the reasoning, and the grammar refuses."""
    assert is_of_the_schema(message(thinking, logit_bias={str(CALL): 100})["content"])


def test_reasoning_that_is_not_shown_is_reasoning_all_the_same(thinking: RunningEngine) -> None:
    told = message(thinking, include_reasoning=False)
    assert is_of_the_schema(told["content"])
    assert not told["reasoning"]


def test_behind_a_prompt_whose_reasoning_has_ended_all_is_content(thinking: RunningEngine) -> None:
    messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "<think>\nlet me see\n</think>\n\n"}]
    prefilled: dict[str, Any] = {"messages": messages, "add_generation_prompt": False, "continue_final_message": True}
    whole = message(thinking, **prefilled)
    events = thinking.events(QUESTION, SPEC, max_tokens=MOST, **prefilled)
    streamed = "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
    assert is_of_the_schema(streamed)
    assert (whole["content"], whole["reasoning"]) == (streamed, None)


def test_a_completion_does_not_reason(thinking: RunningEngine) -> None:
    assert is_of_the_schema(thinking.completion(QUESTION, SPEC))


def test_without_a_constraint_nothing_of_it_is_masked(thinking: RunningEngine) -> None:
    answer = thinking.ask(QUESTION, None, max_tokens=MOST, logit_bias={str(END): 100})
    assert answer.finish_reason == "stop"
    assert len(answer.tokens) == 1


def test_drafts_are_masked_as_well(tmp_path: Path) -> None:
    ngrams = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4, "prompt_lookup_min": 1}
    arguments = {"reasoning_parser": "qwen3", "speculative_config": ngrams}
    with running_engine(model=str(thinking_model(tmp_path / "model")), engine_args=arguments) as engine:
        answer = engine.ask(QUESTION, SPEC, max_tokens=MOST)
        assert is_of_the_schema(answer.text)


def test_a_budget_ends_the_reasoning_of_its_own_request_beside_drafts(tmp_path: Path) -> None:
    """In a step without drafts, the end was written into the logits of the batch's first request."""
    endless: dict[str, Any] = {"max_tokens": MOST, "logit_bias": {str(BEGINS): 100, str(ENDS): -100}}
    with running_engine(
        model=str(thinking_model(tmp_path / "model")), engine_args={"reasoning_parser": "qwen3"}, prompt_lookup=True
    ) as engine:
        free, bounded = engine.ask_all([(QUESTION, SPEC, endless), (QUESTION, SPEC, {**endless, "thinking_token_budget": 8})])
    assert free.tokens.index(ENDS) == MOST // 2
    assert bounded.tokens.index(ENDS) <= 9
    assert all(is_of_the_schema(answer.text) for answer in (free, bounded))


def test_an_end_of_several_tokens_goes_on_behind_drafts() -> None:
    marks = EndMarks((7, 8, 9))
    assert [marks.next_of(written, 0) for written in ([], [1, 7], [7, 8], [7, 8, 9], [8])] == [7, 8, 9, 7, 7]
    assert [marks.next_of([1, 7], drafts) for drafts in range(3)] == [8, 9, 9]


def test_an_end_of_several_tokens_is_written_whole(tmp_path: Path) -> None:
    """`<|close|>think<|sep|>`."""
    with running_engine(model=str(thinking_model(tmp_path / "model")), engine_args={"reasoning_parser": "kimi_k3"}) as engine:
        told = message(engine)
        assert is_of_the_schema(told["content"])
        assert told["reasoning"]
