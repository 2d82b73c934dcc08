"""The messages of a chat: what is known of them reaches the engine, each with a value of its type, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.conversation import LONGEST_FUNCTION_NAME, MOST_MEDIA, ROLES, MessageReader
from deployments.errors import ApiError

MOST = 4
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def calling(*calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": list(calls)}


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        (None, "messages"),
        ([], "messages"),
        ("hello", "messages"),
        (["hello"], "messages[0]"),
        ([{"role": "user"}, {"content": "hello"}], "messages[1].role"),
        ([{"role": "narrator", "content": "hello"}], "messages[0].role"),
        ([{"role": ["user"], "content": "hello"}], "messages[0].role"),
        ([user(5)], "messages[0].content"),
        ([user({"type": "text"})], "messages[0].content"),
        ([user([0])], "messages[0].content[0]"),
        ([user([{"type": "text", "text": 5}])], "messages[0].content[0].text"),
        ([user([{"type": "text"}])], "messages[0].content[0]"),
        ([user([{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}])], "messages[0].content[0].type"),
        ([user([{"type": []}])], "messages[0].content[0].type"),
        ([user([{"text": "a"}])], "messages[0].content[0].type"),
        ([user([{"type": "thinking", "thinking": "so", "closed": 1}])], "messages[0].content[0].closed"),
        ([user([{"type": "image_embeds", "image_embeds": {"a": [1] * 33}}])], "messages[0].content[0].image_embeds"),
        ([user([{"type": "image_embeds", "image_embeds": [[[[]]]]}])], "messages[0].content[0].image_embeds"),
        ([user([{"type": "image_url", "image_url": {"detail": "low"}}])], "messages[0].content[0].image_url"),
        ([user([{"type": "image_url", "image_url": None, "uuid": "theirs"}])], "messages[0].content[0]"),
        ([{"role": "user", "content": "a", "name": 5}], "messages[0].name"),
        ([{"role": "tool", "content": "a", "tool_call_id": []}], "messages[0].tool_call_id"),
        ([{"role": "assistant", "reasoning": {}}], "messages[0].reasoning"),
        ([{"role": "assistant", "tool_calls": {}}], "messages[0].tool_calls"),
        ([calling(5)], "messages[0].tool_calls[0]"),
        ([calling({"id": "a"})], "messages[0].tool_calls[0]"),
        ([calling({"function": {"arguments": "{}"}})], "messages[0].tool_calls[0].function"),
        ([calling({"function": {"name": None, "arguments": "{}"}})], "messages[0].tool_calls[0].function"),
        ([calling({"function": {"name": "f", "arguments": {}}})], "messages[0].tool_calls[0].function.arguments"),
        ([calling({"function": {"name": "f" * (LONGEST_FUNCTION_NAME + 1)}})], "messages[0].tool_calls[0].function.name"),
        ([user(["a"] * MOST), user(["a"])], "messages[1].content"),
        ([user([])] * 3 + [calling(*[{"function": {"name": "f"}}] * (MOST + 1))], "messages[3].tool_calls"),
    ],
)
def test_a_message_at_fault_is_a_400_that_names_the_place(messages: Any, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        MessageReader(MOST).read(messages)
    assert (caught.value.status, caught.value.param) == (400, param)
    assert len(caught.value.message) < 300


def test_images_are_bounded_since_each_is_unpacked() -> None:
    assert MessageReader(100).read([user([PICTURE] * MOST_MEDIA)]) == [user([PICTURE] * MOST_MEDIA)]
    with pytest.raises(ApiError) as caught:
        MessageReader(100).read([user([PICTURE] * MOST_MEDIA), user([PICTURE])])
    assert (caught.value.code, caught.value.param) == ("over_limit", "messages[1].content[0]")


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ({"image_url": "https://a/b.png", "uuid": "theirs"}, {"type": "image_url", "image_url": {"url": "https://a/b.png"}}),
        ({**PICTURE, "uuid": "theirs"}, PICTURE),
        (
            {"type": "input_image", "image_url": "https://a/b.png", "detail": "auto"},
            {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
        ),
        ({"type": "image_embeds", "image_embeds": {"a": "x", "thw": [1, 2, 2]}, "uuid": "theirs"},) * 2,
    ],
)
def test_an_image_has_no_name_of_the_clients_choice(part: dict[str, Any], read: dict[str, Any]) -> None:
    """Caches that all tenants share would go by it."""
    assert MessageReader(MOST).read([user([part])]) == [user([{name: value for name, value in read.items() if name != "uuid"}])]


@pytest.mark.parametrize("before", ["", '"', '"\\', "\\"])
def test_the_values_in_arguments_of_many_calls_count_together(before: str) -> None:
    """A text without its end hides nothing of the next one."""

    def calls(arguments: str) -> list[dict[str, Any]]:
        functions = [{"name": "f", "arguments": text} for text in [before, *[arguments] * 1000]]
        return [{"role": "assistant", "tool_calls": [{"function": function} for function in functions]}]

    assert MessageReader(2000).read(calls('{"city": "Oslo, [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}'))
    for slow in ("[" + ",".join(["2e-308"] * 60) + "]", "[" * 200):
        with pytest.raises(ApiError) as caught:
            MessageReader(2000).read(calls(slow))
        assert (caught.value.code, caught.value.param) == ("over_limit", "messages")


def test_the_roles_of_openai_are_known() -> None:
    assert len(MessageReader(MOST).read([user("hello") | {"role": role} for role in ROLES])) == len(ROLES)


def test_a_conversation_with_calls_is_as_it_was_but_for_what_nobody_knows() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": ["Rain?", PICTURE], "name": "ada"},
        {"role": "assistant", "reasoning": "I look.", "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
    ]
    cached = {"type": "input_text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    odd = [{**messages[0], "content": [cached]}, *({**message, "annotations": [], "audio": None} for message in messages[1:])]
    assert MessageReader(MOST).read(odd) == messages
