"""Prompts that an engine's prefix cache would find alike have one name for their beginning."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.prompt_prefix import FIRST, prompt_prefix

LONG = "You are careful and brief. " * 10


def chat(*messages: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in messages], **fields}


def test_prompts_with_the_same_instructions_begin_alike_whatever_follows() -> None:
    one, other = chat(("system", LONG), ("user", "One.")), chat(("system", LONG), ("user", "Other."))
    assert prompt_prefix(one) == prompt_prefix(other) != ""
    assert prompt_prefix(one) != prompt_prefix(chat(("system", LONG + "!"), ("user", "One.")))


def test_tools_come_before_the_instructions() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": LONG}}]
    assert prompt_prefix(chat(("system", LONG), tools=tools)) != prompt_prefix(chat(("system", LONG)))
    assert prompt_prefix(chat(("user", "One."), tools=tools)) != ""


def test_the_turns_of_a_conversation_begin_alike() -> None:
    first = chat(("user", LONG))
    later = chat(("user", LONG), ("assistant", "Yes."), ("user", "And?"))
    assert prompt_prefix(first) == prompt_prefix(later) != ""


@pytest.mark.parametrize("text", ["x" * FIRST, "long " * 1000])
def test_without_instructions_only_the_first_part_counts(text: str) -> None:
    assert prompt_prefix({"prompt": text + "one"}) == prompt_prefix({"prompt": text + "other"}) != ""


def test_short_prompts_say_nothing() -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"prompt": "Hi."},
        {"messages": []},
        chat(("user", "Hi.")),
        {"messages": "nonsense"},
        {"prompt": None},
    ]
    for body in bodies:
        assert prompt_prefix(body) == ""


def test_token_ids_are_a_prompt_too_and_images_none() -> None:
    assert prompt_prefix({"prompt": list(range(1000))}) == prompt_prefix({"prompt": list(range(999))}) != ""
    image = [{"type": "image_url", "image_url": {"url": "x" * 5000}}]
    assert prompt_prefix(chat(("user", image))) == ""


def test_lone_surrogates_are_read() -> None:
    assert prompt_prefix({"prompt": "\ud800" * 600}) != ""
