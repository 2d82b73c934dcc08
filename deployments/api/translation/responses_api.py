"""OpenAI's Responses API: requests that go on from stored responses, answers that are stored, and those that are made in the background."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, ParamSpec, TypeVar
from uuid import uuid4

import msgspec

from deployments.access.caller import Caller
from deployments.api.bounds.request_limits import LARGE_BODY
from deployments.api.translation import responses_request
from deployments.api.translation.exchange import Exchange, Reserve, TranslatedExchange, unbounded
from deployments.api.translation.response_store import LEASE_S, ResponseKey, ResponseStore
from deployments.api.translation.responses_answer import CANCELLED, ENDED, IN_PROGRESS, ResponseAnswer, failure
from deployments.api.translation.values import PlacedMessage
from deployments.constraints.json_shape import shape_of
from deployments.errors import ApiError, bad_request, unavailable
from grammar_service.errors import CacheUnavailable
from grammar_service.sandbox.background_thread import MOST_WAITING, BackgroundThread
from grammar_service.sandbox.turns import FairTurns
from model_service.messages import Endpoint

logger = logging.getLogger(__name__)
MAX_READS = 4
"""Stored responses that are read at a time, tenants in turns: each may have megabytes."""
MOST_REPEATED = 1024
"""Characters of a text that the response to a large request repeats. It repeats no array or object: each would be written three times
into a stream."""
RENEW_S = 2
"""Seconds between two renewals of the leases of an ingress, which are one Redis call. A cancelled response ends within them."""
_ID = re.compile(r"resp_[0-9a-f]{32}")
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """`items` are those of the whole conversation that the response answers, its own output not among them."""

    response: dict[str, Any]
    items: list[Any] = field(default_factory=list)


_DECODER = msgspec.json.Decoder(StoredResponse)


class ResponsesApi:
    """OpenAI's. `strict`: whether the arguments of tools that do not say it are enforced, as in OpenAI's API; `served_name` is the model of
    requests that name none. A conversation is stored that has so many bytes and values at most."""

    name = "responses"
    endpoint = Endpoint.CHAT

    def __init__(
        self, store: ResponseStore, served_name: str, thread: BackgroundThread, *, strict: bool, most_bytes: int, most_values: int
    ) -> None:
        self._store = store
        self._reads = FairTurns(range(MAX_READS), MOST_WAITING, time.monotonic)
        self._most_bytes = most_bytes
        self._most_values = most_values
        self._served_name = served_name
        self._strict = strict
        self._thread = thread

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int, reserve: Reserve = unbounded) -> Exchange:
        data = await self._before(body, caller.name)
        reserve(data)
        all_bytes = size + len(data)
        return await self._run(all_bytes, caller.name, self._translated, body, data, caller.name, all_bytes)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error.body()

    async def stored(self, response_id: str, tenant: str, reserve: Reserve = unbounded) -> StoredResponse | None:
        """None: the tenant has no response of this id, or no longer. Raises ApiError (503)."""
        stored = await self._read(response_id, tenant, reserve)
        if not _is_running(stored) or await _ask_store(self._store.is_running(tenant, response_id)):
            return stored
        # It may have ended since it was read.
        stored = await self._read(response_id, tenant, reserve)
        if stored is not None and _is_running(stored):
            stored.response.update(failure(unavailable("The process that answered it has ended; ask again.", "response_lost")))
        return stored

    async def cancel(self, response_id: str, tenant: str, reserve: Reserve = unbounded) -> StoredResponse | None:
        """The response, which is in progress no more: its work ends within `RENEW_S`. None: the tenant has none of this id.

        Raises:
            ApiError: 400, the client waits for the response itself; 503.
        """
        size = 0

        def sized(data: bytes) -> None:
            nonlocal size
            size = len(data)
            reserve(data)

        stored = await self.stored(response_id, tenant, sized)
        if stored is not None and not stored.response.get("background"):
            raise bad_request("Only a response with 'background' can be cancelled.", "response_id", "response_not_in_background")
        if stored is None or not _is_running(stored):
            return stored
        cancelled = replace(stored, response=stored.response | {"status": CANCELLED})
        data = await self._run(size, tenant, msgspec.json.encode, cancelled)
        in_time = await _ask_store(self._store.finish(tenant, response_id, data))
        return cancelled if in_time else await self.stored(response_id, tenant, reserve)

    async def delete(self, response_id: str, tenant: str) -> bool:
        """Whether it was there; one in progress is given up. Raises ApiError (503)."""
        return await _ask_store(self._store.delete(tenant, response_id)) if is_response_id(response_id) else False

    async def renew(self, keys: Sequence[ResponseKey]) -> Sequence[ResponseKey]:
        """Renews the leases of responses in progress, every `RENEW_S`. Returns those without one: a client has cancelled or deleted them.
        Raises CacheUnavailable."""
        return await self._store.renew(keys)

    async def close(self) -> None:
        await self._store.close()

    async def keep(self, stored: StoredResponse, tenant: str, size: int) -> bool:
        """Whether it is kept: a conversation may be as large as a body, and have as many values. `size` is what it has grown from."""
        response_id = str(stored.response["id"])
        try:
            data = await self._run(size, tenant, _encoded, stored, self._most_bytes, self._most_values)
            if data is not None:
                await self._store.put(tenant, response_id, data)
        except CacheUnavailable as error:
            logger.warning("a response was not stored: %s", error)
            return False
        return data is not None

    async def start(self, stored: StoredResponse, tenant: str, size: int) -> None:
        """Keeps a response in progress. Raises ApiError: 400, its conversation is too large; 503, also where others take all the room."""
        data = await self._run(size, tenant, _encoded, stored, self._most_bytes, self._most_values)
        if data is None:
            raise bad_request("'background' needs a response that is stored, and this one is too large.", "input", "response_too_large")
        if not await _ask_store(self._store.start(tenant, str(stored.response["id"]), data)):
            raise unavailable("Responses in progress take all the room; try again in a moment.", "response_store_full")

    async def finish(self, stored: StoredResponse, tenant: str, size: int) -> None:
        """Keeps what has become of it, unless it has been given up. A store that does not answer is asked for as long as it may be gone."""
        response_id = str(stored.response["id"])
        if (data := await self._run(size, tenant, _encoded, stored, self._most_bytes, self._most_values)) is None:
            too_large = bad_request("The response is too large to be stored.", "input", "response_too_large")
            stored.response.update(failure(too_large), output=[])
            data = await self._run(size, tenant, msgspec.json.encode, stored)
        for _ in range(LEASE_S // RENEW_S):
            try:
                await self._store.finish(tenant, response_id, data)
                return
            except CacheUnavailable:
                await asyncio.sleep(RENEW_S)
        logger.warning("a response that was made in the background is lost: Redis has been gone for a minute")

    async def _read(self, response_id: str, tenant: str, reserve: Reserve) -> StoredResponse | None:
        if (data := await self._data(response_id, tenant)) is None:
            return None
        reserve(data)
        return await self._run(len(data), tenant, _DECODER.decode, data)

    async def _before(self, body: Mapping[str, Any], tenant: str) -> bytes:
        """The response that this one goes on from; empty where there is none."""
        if (name := body.get("previous_response_id")) is None:
            return b""
        if (data := await self._data(name, tenant) if isinstance(name, str) else None) is None:
            raise bad_request("There is no response of this id, or no longer.", "previous_response_id", "previous_response_not_found")
        return data

    async def _data(self, response_id: str, tenant: str) -> bytes | None:
        if not is_response_id(response_id):
            return None
        async with self._reads.turn(tenant):
            return await _ask_store(self._store.get(tenant, response_id))

    async def _run(self, size: int, tenant: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` makes of so many bytes: at once where they are few."""
        return work(*args, **kwargs) if size <= LARGE_BODY else await self._thread.run(tenant, work, *args, **kwargs)

    def _translated(self, body: Mapping[str, Any], data: bytes, tenant: str, size: int) -> Exchange:
        earlier = _DECODER.decode(data) if data else StoredResponse({"output": [], "status": "completed"})
        if (status := earlier.response["status"]) not in ENDED:
            message = f"The response is {status}: only one that has an answer can be gone on from."
            raise bad_request(message, "previous_response_id", "previous_response_not_completed")
        before, items = [*earlier.items, *earlier.response["output"]], responses_request.input_items(body)
        options = responses_request.chat_options(body, self._strict)
        messages = responses_request.messages_of(body, before, items)
        echoed = body if size <= LARGE_BODY else {name: value for name, value in body.items() if _is_short(value)}
        answer = ResponseAnswer(echoed, uuid4().hex, body.get("model") or self._served_name)
        if body.get("store") is False:
            return TranslatedExchange(options, messages, responses_request.NAMES, answer, size=size)
        exchange = BackgroundExchange if body.get("background") else _StoredExchange
        request, stored = _ChatRequest(options, messages, answer, size), StoredResponse(answer.response, [*before, *items])
        return exchange(self, request, stored, tenant)


class _ChatRequest(NamedTuple):
    """The chat completion for a request; `size`: bytes that it was made of."""

    options: Mapping[str, Any]
    messages: Sequence[PlacedMessage]
    answer: ResponseAnswer
    size: int


class _ResponseExchange(TranslatedExchange):
    """A request whose response is stored, with its conversation."""

    def __init__(self, api: ResponsesApi, request: _ChatRequest, stored: StoredResponse, tenant: str) -> None:
        super().__init__(request.options, request.messages, responses_request.NAMES, request.answer, size=request.size)
        self.key: ResponseKey = tenant, str(stored.response["id"])
        self.response = stored.response
        self._api = api
        self._stored = stored


class _StoredExchange(_ResponseExchange):
    """Stores the response before the client gets its end. Where that fails, the response says that it is not stored."""

    async def ended(self) -> None:
        self.response["store"] = await self._api.keep(self._stored, self.key[0], self.size)


class BackgroundExchange(_ResponseExchange):
    """The client gets the response after `start`, in progress, and reads it again until `finish` has stored its end."""

    async def start(self) -> None:
        """Raises ApiError: it cannot be stored."""
        await self._api.start(self._stored, self.key[0], self.size)

    async def finish(self) -> None:
        await self._api.finish(self._stored, self.key[0], self.size)


async def _ask_store(call: Awaitable[T]) -> T:
    """What the store answers. Raises ApiError (503)."""
    try:
        return await call
    except CacheUnavailable:
        raise unavailable("Stored responses cannot be reached now; try again in a moment.", "response_store_unavailable") from None


def _is_running(stored: StoredResponse | None) -> bool:
    return stored is not None and stored.response["status"] == IN_PROGRESS


def _is_short(value: Any) -> bool:
    return len(value) <= MOST_REPEATED if isinstance(value, str) else not isinstance(value, list | dict)


def _encoded(stored: StoredResponse, most_bytes: int, most_values: int) -> bytes | None:
    """None: there is too much of it."""
    data = msgspec.json.encode(stored)
    return data if len(data) <= most_bytes and shape_of(data).values <= most_values else None


def is_response_id(name: str) -> bool:
    """As this service makes them."""
    return _ID.fullmatch(name) is not None
