"""The APIs that are spoken over HTTP and by handle: what each makes of a request, and of an error."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar
from uuid import uuid4

import msgspec

from deployments.access.caller import Caller
from deployments.api.bounds.request_limits import LARGE_BODY
from deployments.api.translation import messages_request, responses_request
from deployments.api.translation.exchange import Exchange, TranslatedExchange
from deployments.api.translation.messages_answer import MessageAnswer, TokenCount, error_body
from deployments.api.translation.response_store import ResponseStore
from deployments.api.translation.responses_answer import ResponseAnswer
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
_ID = re.compile(r"resp_[0-9a-f]{32}")
Reserve = Callable[[bytes], None]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """`items` are those of the whole conversation that the response answers, its own output not among them."""

    response: dict[str, Any]
    items: list[Any] = field(default_factory=list)


_DECODER = msgspec.json.Decoder(StoredResponse)


def unbounded(_: bytes) -> None:
    """For whoever counts no memory."""


class Api(Protocol):
    """`name` is what metrics and traces call it; `endpoint` is the gateway's, which answers it."""

    name: str
    endpoint: Endpoint

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int, reserve: Reserve = unbounded) -> Exchange:
        """`size` is the body's, in bytes; `reserve` reserves memory for JSON that is read beside it. Raises ApiError."""

    def error(self, error: ApiError) -> dict[str, Any]:
        """The body that tells of it."""


class GatewayApi:
    """Chat completions and completions, which the gateway itself speaks."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = str(endpoint)
        self.endpoint = endpoint

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int, reserve: Reserve = unbounded) -> Exchange:
        return Exchange(body)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error.body()


class MessagesApi:
    """Anthropic's. `reasons`: whether the model does."""

    name = "messages"
    endpoint = Endpoint.CHAT

    def __init__(self, reasons: bool, background: BackgroundThread) -> None:
        self._reasons = reasons
        self._background = background

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int, reserve: Reserve = unbounded) -> Exchange:
        if size <= LARGE_BODY:
            return self._translated(body)
        return await self._background.run(caller.name, self._translated, body)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error_body(error)

    def _translated(self, body: Mapping[str, Any]) -> Exchange:
        options, warnings = messages_request.chat_options(body, self._reasons)
        return TranslatedExchange(options, messages_request.messages_of(body), messages_request.NAMES, MessageAnswer(), warnings)


class CountTokensApi(MessagesApi):
    """How many tokens a message's prompt has."""

    name = "count_tokens"
    endpoint = Endpoint.TOKENIZE

    def _translated(self, body: Mapping[str, Any]) -> Exchange:
        options, _ = messages_request.chat_options(body, self._reasons)
        rendered: dict[str, Any] = {name: options[name] for name in ("model", "tools") if name in options}
        return TranslatedExchange(rendered, messages_request.messages_of(body), messages_request.NAMES, TokenCount())


class ResponsesApi:
    """OpenAI's. `strict`: whether the arguments of tools that do not say it are enforced, as in OpenAI's API; `served_name` is the model of
    requests that name none. A conversation is stored that has so many bytes and values at most."""

    name = "responses"
    endpoint = Endpoint.CHAT

    def __init__(
        self, store: ResponseStore, served_name: str, background: BackgroundThread, *, strict: bool, most_bytes: int, most_values: int
    ) -> None:
        self._store = store
        self._reads = FairTurns(range(MAX_READS), MOST_WAITING, time.monotonic)
        self._most_bytes = most_bytes
        self._most_values = most_values
        self._served_name = served_name
        self._strict = strict
        self._background = background

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int, reserve: Reserve = unbounded) -> Exchange:
        data = await self._before(body, caller.name)
        reserve(data)
        all_bytes = size + len(data)
        return await self._run(all_bytes, caller.name, self._translated, body, data, caller.name, all_bytes)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error.body()

    async def stored(self, response_id: str, tenant: str, reserve: Reserve = unbounded) -> StoredResponse | None:
        """None: the tenant has no response of this id, or no longer. Raises ApiError (503)."""
        if (data := await self._data(response_id, tenant)) is None:
            return None
        reserve(data)
        return await self._run(len(data), tenant, _DECODER.decode, data)

    async def delete(self, response_id: str, tenant: str) -> bool:
        """Whether it was there. Raises ApiError (503)."""
        try:
            return await self._store.delete(tenant, response_id) if is_response_id(response_id) else False
        except CacheUnavailable:
            raise unavailable("Stored responses cannot be deleted now; try again in a moment.", "response_store_unavailable") from None

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
        try:
            async with self._reads.turn(tenant):
                return await self._store.get(tenant, response_id)
        except CacheUnavailable:
            raise unavailable("Stored responses cannot be read now; try again in a moment.", "response_store_unavailable") from None

    async def _run(self, size: int, tenant: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` makes of so many bytes: at once where they are few."""
        return work(*args, **kwargs) if size <= LARGE_BODY else await self._background.run(tenant, work, *args, **kwargs)

    def _translated(self, body: Mapping[str, Any], data: bytes, tenant: str, size: int) -> Exchange:
        earlier = _DECODER.decode(data) if data else StoredResponse({"output": []})
        before, items = [*earlier.items, *earlier.response["output"]], responses_request.input_items(body)
        options = responses_request.chat_options(body, self._strict)
        messages = responses_request.messages_of(body, before, items)
        echoed = body if size <= LARGE_BODY else {name: value for name, value in body.items() if _is_short(value)}
        answer = ResponseAnswer(echoed, uuid4().hex, body.get("model") or self._served_name)
        if body.get("store") is False:
            return TranslatedExchange(options, messages, responses_request.NAMES, answer, size=size)
        keep = partial(self.keep, StoredResponse(answer.response, [*before, *items]), tenant, size)
        return _ResponseExchange(options, messages, answer, keep, size)


class _ResponseExchange(TranslatedExchange):
    """Keeps the response before the client hears that it is there. Where that fails, the response says that it is not stored."""

    def __init__(
        self,
        options: Mapping[str, Any],
        messages: Sequence[PlacedMessage],
        answer: ResponseAnswer,
        keep: Callable[[], Awaitable[bool]],
        size: int,
    ) -> None:
        super().__init__(options, messages, responses_request.NAMES, answer, size=size)
        self._answer = answer
        self._keep = keep

    async def ended(self) -> None:
        self._answer.response["store"] = await self._keep()


def _is_short(value: Any) -> bool:
    return len(value) <= MOST_REPEATED if isinstance(value, str) else not isinstance(value, list | dict)


def _encoded(stored: StoredResponse, most_bytes: int, most_values: int) -> bytes | None:
    """None: there is too much of it."""
    data = msgspec.json.encode(stored)
    return data if len(data) <= most_bytes and shape_of(data).values <= most_values else None


@dataclass(frozen=True)
class Apis:
    chat: Api
    completion: Api
    responses: ResponsesApi
    messages: Api
    count_tokens: Api

    def named(self, name: str) -> Api:
        """Raises ApiError (400)."""
        api: Api | None = {api.name: api for api in self.paths().values()}.get(name)
        if api is None:
            raise bad_request(f"There is no endpoint {name!r}.", "endpoint")
        return api

    def paths(self) -> Mapping[str, Api]:
        """Where each is spoken over HTTP."""
        return {
            "/v1/chat/completions": self.chat,
            "/v1/completions": self.completion,
            "/v1/responses": self.responses,
            "/v1/messages": self.messages,
            "/v1/messages/count_tokens": self.count_tokens,
            "/tokenize": GatewayApi(Endpoint.TOKENIZE),
            "/detokenize": GatewayApi(Endpoint.DETOKENIZE),
        }


def is_response_id(name: str) -> bool:
    """As this service makes them."""
    return _ID.fullmatch(name) is not None
