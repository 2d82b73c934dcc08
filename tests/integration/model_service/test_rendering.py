"""Prompts are the same whether they are made at once or in vLLM's thread, and what would take long goes there."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import AutoTokenizer

from deployments.builders import EMBEDDED_WEIGHTS
from tests.integration.model_service.running_engine import RunningEngine

TEXT = "The lantern by the river was lit. "
FEW, MANY = 4, 130
"""Repetitions: within what is rendered at once, and beyond it."""
IMAGE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/none.png"}}


def message(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **fields}


@pytest.mark.parametrize("times", [FEW, MANY])
def test_a_chat_becomes_what_its_template_says(jumping: RunningEngine, times: int) -> None:
    tokenizer = AutoTokenizer.from_pretrained(str(EMBEDDED_WEIGHTS))
    expected = tokenizer.apply_chat_template([message(TEXT * times)], add_generation_prompt=True, return_dict=False)
    assert jumping.body(TEXT * times, max_tokens=1, return_token_ids=True)["prompt_token_ids"] == expected


@pytest.mark.parametrize(
    ("messages", "template_arguments", "short"),
    [
        ([message(TEXT)], {"tools": None, "add_generation_prompt": True}, True),
        ([message(None, tool_calls=[{"id": "1", "function": {"name": "a", "arguments": "{}"}}])], {}, True),
        ([message(TEXT)] * MANY, {}, False),
        ([message(TEXT * MANY)], {}, False),
        ([message(TEXT, tool_calls=iter([]))], {}, False),
        ([message(TEXT)], {"documents": [{"text": TEXT * MANY}]}, False),
        ([message(TEXT)], {TEXT * MANY: True}, False),
        ([message([IMAGE])], {}, False),
        ([message([{"type": "text", "text": TEXT}])], {}, False),
    ],
)
def test_chats_that_take_long_or_fetch_media_are_not_rendered_at_once(
    messages: list[dict[str, Any]], template_arguments: dict[str, Any], short: bool
) -> None:
    from model_service.engine.frontend.rendering import is_short_chat  # vLLM reads the environment when it is imported

    assert is_short_chat([messages], template_arguments) == short


def test_tokens_count_as_much_as_characters() -> None:
    from model_service.engine.frontend.rendering import SHORT, is_short

    assert is_short([{"prompt_token_ids": [1] * (SHORT // 2)}])
    assert not is_short([{"prompt_token_ids": [1] * SHORT}])
    assert not is_short([b"tensors"])


def test_an_image_for_a_model_of_texts_is_refused_with_its_place(jumping: RunningEngine) -> None:
    asked = [message(TEXT), message([{"type": "text", "text": TEXT}, IMAGE])]
    assert jumping.body("", messages=asked)["error"] == {
        "message": "'messages[1]': this model takes text only",
        "type": "BadRequestError",
        "param": "messages[1]",
        "code": 400,
    }


@pytest.mark.parametrize("part", [IMAGE, {"type": "prompt_embeds", "data": ""}, {"type": "text", "text": ""}])
def test_media_are_found_in_parts_that_can_be_looked_at_once(part: dict[str, Any]) -> None:
    from model_service.engine.frontend.rendering import has_media

    messages = [message(TEXT), message(iter([part]))]
    assert has_media([messages]) == (part["type"] != "text")
    assert messages[1]["content"] == [part]
