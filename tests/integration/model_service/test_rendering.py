"""Prompts are the same whether they are made at once or in vLLM's thread, and what would take long goes there."""

from __future__ import annotations

import asyncio
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
        ([message([{"type": "text", "text": TEXT}])], {}, True),
        ([message([{"type": "text", "text": TEXT * MANY}])], {}, False),
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
def test_types_are_found_of_parts_that_can_be_looked_at_once(part: dict[str, Any]) -> None:
    from model_service.engine.frontend.rendering import part_types

    messages = [message(TEXT), message(iter([part, "more"]))]
    assert part_types([messages]) == {part["type"], "text"}
    assert messages[1]["content"] == [part, "more"]


async def test_a_long_text_waits_for_one_of_another_tenant_and_not_for_all(jumping: RunningEngine) -> None:
    """Also where the clients of these have left."""
    from vllm.config import ModelConfig, VllmConfig
    from vllm.renderers import TokenizeParams
    from vllm.renderers.registry import renderer_from_config

    from model_service.engine.frontend.rendering import CURRENT_TENANT, render_short_prompts_at_once

    renderer = renderer_from_config(VllmConfig(model_config=ModelConfig(model=str(EMBEDDED_WEIGHTS))))
    render_short_prompts_at_once(renderer)
    done: list[str] = []

    async def rendered(tenant: str, times: int) -> None:
        CURRENT_TENANT.set(tenant)
        await renderer.render_cmpl_async([{"prompt": TEXT * times}], TokenizeParams(max_total_tokens=None))
        done.append(tenant)

    many = [asyncio.create_task(rendered("many", 20 * MANY)) for _ in range(6)]
    await asyncio.sleep(0)
    other = asyncio.create_task(rendered("other", MANY))
    await asyncio.sleep(0)
    many[0].cancel()
    await asyncio.gather(*many, other, return_exceptions=True)
    assert done == ["other", *["many"] * 5]
    renderer.shutdown()
