"""A request of another API on its way through the gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from deployments.api.translation.exchange import Exchange, TranslatedExchange
from deployments.api.translation.messages_answer import MessageAnswer
from deployments.api.translation.messages_request import NAMES
from deployments.errors import ApiError, bad_request, unavailable
from model_service.replies import Head
from tests.unit.deployments.api.translation.chunks import events, whole

PLACED = [("system", {"role": "system"}), ("messages[0]", {"role": "user"})]


async def items(*given: Any) -> AsyncGenerator[Any, None]:
    for item in given:
        if isinstance(item, Exception):
            raise item
        yield item


def exchange() -> TranslatedExchange:
    return TranslatedExchange({"model": "m"}, PLACED, NAMES, MessageAnswer())


async def told(*given: Any) -> list[Any]:
    return [item async for item in exchange().answer(items(*given))]


def types(text: str) -> list[str]:
    return [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]


def test_the_gateway_is_asked_for_a_chat() -> None:
    assert exchange().body == {"model": "m", "messages": [message for _, message in PLACED]}


async def test_what_the_gateway_speaks_itself_is_passed_on() -> None:
    same = Exchange({"prompt": "x"})
    assert same.body == {"prompt": "x"}
    assert [item async for item in same.answer(items("a", "b"))] == ["a", "b"]
    assert json.loads(same.failed(unavailable("no", "c")).removeprefix("data: "))["error"]["code"] == "c"


async def test_a_whole_answer() -> None:
    answer = json.dumps(whole({"content": "hi"}))
    head, message = await told(Head(200, stream=False), answer[:5], answer[5:])
    assert (head.status, json.loads(message)["content"]) == (200, [{"type": "text", "text": "hi"}])


async def test_a_stream() -> None:
    head, *pieces = await told(Head(200, stream=True), *events({"content": "hi"}))
    assert head.stream
    assert types("".join(pieces))[0] == "message_start"
    assert types("".join(pieces))[-1] == "message_stop"


async def test_an_error_of_the_engine_names_the_place_in_the_request_too() -> None:
    error = {"message": "messages[1] has an image", "param": "messages[1]", "code": 400}
    with pytest.raises(ApiError) as raised:
        await told(Head(400, stream=False), json.dumps({"error": error}))
    assert (raised.value.status, raised.value.message, raised.value.param) == (400, "messages[0] has an image", "messages[0]")


async def test_an_error_about_a_message_names_its_place_in_the_request() -> None:
    with pytest.raises(ApiError) as raised:
        await told(bad_request("'messages[1].content' is wrong, and messages[7]", "messages[1].content"))
    assert (raised.value.message, raised.value.param) == ("'messages[0].content' is wrong, and messages[7]", "messages[0].content")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("response_format.json_schema.schema#/type", "output_config.format.schema#/type"),
        ("response_format", "output_config.format"),
        ("tools[3].function.parameters#/a].function.b", "tools[3].parameters#/a].function.b"),
        ("stop", "stop_sequences"),
        ("stop_token_ids", "stop_token_ids"),
        ("max_tokens", "max_tokens"),
    ],
)
async def test_an_error_names_the_field_that_the_request_has(field: str, expected: str) -> None:
    name, there = field.partition("#")[0], expected.partition("#")[0]
    with pytest.raises(ApiError) as raised:
        await told(bad_request(f"'{name}' is wrong, as stop is", field))
    assert (raised.value.message, raised.value.param) == (f"'{there}' is wrong, as stop is", expected)


@pytest.mark.parametrize(
    "end", [unavailable("gone", "engine_dead"), 'data: {"error": {"message": "gone", "code": "engine_dead", "type": "t"}}\n\n']
)
async def test_a_stream_that_fails_ends_with_the_error(end: Any) -> None:
    pieces = await told(Head(200, stream=True), *events({"content": "hi"})[:1], end)
    assert types("".join(map(str, pieces[1:])))[-1] == "error"
