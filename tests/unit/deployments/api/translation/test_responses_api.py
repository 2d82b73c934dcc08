"""What a response keeps of its conversation, and what that costs the ones that go on from it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from deployments.access.caller import ANYBODY
from deployments.api.translation.response_store import MemoryResponses
from deployments.api.translation.responses_api import ResponsesApi
from deployments.errors import ApiError
from grammar_service.errors import CacheUnavailable
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.replies import Head
from tests.unit.deployments.api.translation.chunks import events, whole

MOST_BYTES, MOST_VALUES = 40_000, 2_000


def api_of(store: MemoryResponses | None = None) -> ResponsesApi:
    store = store or MemoryResponses(60, 1 << 20)
    return ResponsesApi(store, "m", BackgroundThread(), strict=True, most_bytes=MOST_BYTES, most_values=MOST_VALUES)


async def items(stream: bool) -> AsyncGenerator[Any, None]:
    yield Head(200, stream)
    for piece in events({"content": "hi"}) if stream else [json.dumps(whole({"content": "hi"}))]:
        yield piece


async def answered(api: ResponsesApi, body: dict[str, Any], stream: bool = False) -> dict[str, Any]:
    """The response object."""
    exchange = await api.exchange(body, ANYBODY, len(json.dumps(body)))
    told = "".join([str(item) async for item in exchange.answer(items(stream)) if not isinstance(item, Head)])
    last = told if not stream else told.rstrip().rpartition("data: ")[2]
    response: dict[str, Any] = json.loads(last)
    return response["response"] if stream else response


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_is_gone_on_from(stream: bool) -> None:
    api = api_of()
    first = await answered(api, {"input": "one", "instructions": "i"}, stream)
    assert first["store"] is True
    exchange = await api.exchange({"input": "two", "previous_response_id": first["id"]}, ANYBODY, 10)
    assert [message["content"][0]["text"] for message in exchange.body["messages"]] == ["one", "hi", "two"]


async def test_several_responses_go_on_from_one() -> None:
    api = api_of()
    first = await answered(api, {"input": "one"})
    asked = [{"input": text, "previous_response_id": first["id"]} for text in ("two", "three")]
    thens = [await answered(api, body) for body in asked]
    for text, then in zip(("two", "three"), thens, strict=True):
        exchange = await api.exchange({"input": "end", "previous_response_id": then["id"]}, ANYBODY, 10)
        assert [message["content"][0]["text"] for message in exchange.body["messages"]] == ["one", "hi", text, "hi", "end"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("junk", ["x" * MOST_BYTES, [[]] * MOST_VALUES])
async def test_what_is_larger_than_a_body_may_be_is_not_stored(junk: Any, stream: bool) -> None:
    api = api_of()
    response = await answered(api, {"input": [{"role": "user", "content": "hi", "x": junk}]}, stream)
    assert response["store"] is False
    assert await api.stored(response["id"], "") is None


async def test_a_conversation_grows_no_further_than_a_body_may() -> None:
    api, before, grown = api_of(), dict[str, Any](), list[bool]()
    for _ in range(8):
        item = {"role": "user", "content": "hi", "x": "x" * (MOST_BYTES // 4)}
        response = await answered(api, {"input": [item], **before})
        grown.append(response["store"])
        before = {"previous_response_id": response["id"]} if response["store"] else before
    assert grown == [True] * 3 + [False] * 5


async def test_memory_is_reserved_for_what_is_read_beside_a_request() -> None:
    api, reserved = api_of(), list[bytes]()
    response = await answered(api, {"input": "hi"})
    exchange = await api.exchange({"input": "x", "previous_response_id": response["id"]}, ANYBODY, 10, reserved.append)
    assert exchange.size > len(reserved[0]) > 100

    def full(_: bytes) -> None:
        raise ApiError(503, "full", code="ingress_busy")

    with pytest.raises(ApiError, match="full"):
        await api.exchange({"input": "x", "previous_response_id": response["id"]}, ANYBODY, 10, full)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_store_that_does_not_answer_costs_no_answer(stream: bool) -> None:
    class Gone(MemoryResponses):
        async def put(self, tenant: str, response_id: str, data: bytes) -> None:
            raise CacheUnavailable("gone")

    response = await answered(api_of(Gone(60, 1 << 20)), {"input": "hi"}, stream)
    assert (response["status"], response["store"]) == ("completed", False)


@pytest.mark.parametrize("stream", [False, True])
async def test_numbers_of_any_size_are_stored(stream: bool) -> None:
    api = api_of()
    response = await answered(api, {"input": "hi", "metadata": {"a": 1 << 64}}, stream)
    stored = await api.stored(response["id"], "")
    assert stored is not None
    assert stored.response["metadata"] == {"a": 1 << 64}
