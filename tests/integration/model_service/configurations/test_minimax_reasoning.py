"""MiniMax M3, which reasons where its prompt begins to, keeps to the grammar behind that, and from the first token elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.model_service.configurations.made_models import minimax_model
from tests.integration.model_service.configurations.test_pass_through import QUESTION, SPEC, is_of_the_schema
from tests.integration.model_service.running_engine import RunningEngine, running_engine

MOST = 96
"""Tokens of an answer."""
PREFILLED: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": True}
EARLIER = {"role": "assistant", "content": "<mm:think>\nlet me see\n</mm:think>\n\n{}"}


@pytest.fixture(scope="module")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    model = str(minimax_model(tmp_path_factory.mktemp("minimax") / "model"))
    with running_engine(model=model, engine_args={"reasoning_parser": "minimax_m3"}) as engine:
        yield engine


def told(engine: RunningEngine, *ahead: dict[str, str], **fields: Any) -> tuple[str, str]:
    """Content and reasoning, the same whole and streamed."""
    fields |= {"messages": [{"role": "user", "content": QUESTION}, *ahead], "max_tokens": MOST}
    choice = engine.body(QUESTION, SPEC, **fields)["choices"][0]
    assert choice["finish_reason"] == "stop"
    deltas = [event["choices"][0]["delta"] for event in engine.events(QUESTION, SPEC, **fields) if event["choices"]]
    streamed = tuple("".join(delta.get(field) or "" for delta in deltas) for field in ("content", "reasoning"))
    whole = choice["message"]["content"] or "", choice["message"]["reasoning"] or ""
    assert whole == streamed
    return whole


@pytest.mark.parametrize("earlier", [[], [EARLIER, {"role": "user", "content": QUESTION}]])
def test_an_answer_stands_behind_the_reasoning_that_the_prompt_begins(thinking: RunningEngine, earlier: list[dict[str, str]]) -> None:
    content, reasoning = told(thinking, *earlier, {"role": "assistant", "content": "<mm:think>\n"}, **PREFILLED)
    assert is_of_the_schema(content)
    assert reasoning


def test_elsewhere_an_answer_begins_with_its_first_token(thinking: RunningEngine) -> None:
    for ahead in ([], [EARLIER, {"role": "user", "content": QUESTION}]):
        content, reasoning = told(thinking, *ahead)
        assert is_of_the_schema(content)
        assert not reasoning
