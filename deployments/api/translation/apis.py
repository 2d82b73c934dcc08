"""The APIs that are spoken over HTTP and by handle: what each makes of a request, and of an error."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from deployments.access.caller import Caller
from deployments.api.translation import messages_request, responses_request
from deployments.api.translation.exchange import Exchange, TranslatedExchange
from deployments.api.translation.messages_answer import MessageAnswer, error_body
from deployments.api.translation.response_store import ResponseStore, StoredResponse
from deployments.api.translation.responses_answer import ResponseAnswer
from deployments.api.translation.values import Placed
from deployments.background_thread import LARGE_BODY, BackgroundThread
from deployments.errors import ApiError, bad_request, unavailable
from grammar_service.errors import CacheUnavailable
from model_service.messages import Endpoint

logger = logging.getLogger(__name__)
ITEMS_AT_ONCE = 100
"""Of an earlier conversation: more are translated beside the event loop."""
_LONG = frozenset({"instructions", "tools", "text", "metadata", "reasoning", "tool_choice"})
"""What the response to a large request does not repeat: it would be written three times into each stream."""
_ID = re.compile(r"resp_[0-9a-f]{32}")


class Api(Protocol):
    """`name` is what metrics and traces call it; `endpoint` is the gateway's, which answers it."""

    name: str
    endpoint: Endpoint

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int) -> Exchange:
        """`size` is the body's, in bytes. Raises ApiError: the request cannot be translated."""

    def error(self, error: ApiError) -> dict[str, Any]:
        """The body that tells of it."""


class GatewayApi:
    """Chat completions and completions, which the gateway itself speaks."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = str(endpoint)
        self.endpoint = endpoint

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int) -> Exchange:
        return Exchange(body)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error.body()


class MessagesApi:
    """Anthropic's. `reasons`: whether the model does."""

    name = "messages"
    endpoint = Endpoint.CHAT

    def __init__(self, reasons: bool) -> None:
        self._reasons = reasons
        self._background = BackgroundThread()

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int) -> Exchange:
        if size <= LARGE_BODY:
            return self._translated(body)
        return await self._background.run(caller.name, self._translated, body)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error_body(error)

    def _translated(self, body: Mapping[str, Any]) -> Exchange:
        options, warnings = messages_request.chat_options(body, self._reasons)
        return TranslatedExchange(options, messages_request.messages_of(body), MessageAnswer(), warnings)


class ResponsesApi:
    """OpenAI's. `strict`: whether the arguments of tools that do not say it are enforced, as in OpenAI's API; `served_name` is the model of
    requests that name none."""

    name = "responses"
    endpoint = Endpoint.CHAT

    def __init__(self, store: ResponseStore, served_name: str, strict: bool) -> None:
        self._store = store
        self._served_name = served_name
        self._strict = strict
        self._background = BackgroundThread()

    async def exchange(self, body: Mapping[str, Any], caller: Caller, size: int) -> Exchange:
        before = await self._before(body, caller.name)
        if size <= LARGE_BODY and len(before) <= ITEMS_AT_ONCE:
            return self._translated(body, before, caller.name, size)
        return await self._background.run(caller.name, self._translated, body, before, caller.name, size)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error.body()

    async def _before(self, body: Mapping[str, Any], tenant: str) -> list[Any]:
        if (name := body.get("previous_response_id")) is None:
            return []
        stored = await self.stored(name, tenant) if isinstance(name, str) else None
        if stored is None:
            raise bad_request("There is no response of this id, or no longer.", "previous_response_id", "previous_response_not_found")
        return [*stored.items, *stored.response["output"]]

    async def stored(self, response_id: str, tenant: str) -> StoredResponse | None:
        """None: the tenant has no response of this id, or no longer. Raises ApiError (503)."""
        try:
            return await self._store.get(tenant, response_id) if is_response_id(response_id) else None
        except CacheUnavailable:
            raise unavailable("Stored responses cannot be read now; try again in a moment.", "response_store_unavailable") from None

    async def close(self) -> None:
        await self._store.close()

    async def delete(self, response_id: str, tenant: str) -> bool:
        """Whether it was there. Raises ApiError (503)."""
        try:
            return await self._store.delete(tenant, response_id) if is_response_id(response_id) else False
        except CacheUnavailable:
            raise unavailable("Stored responses cannot be deleted now; try again in a moment.", "response_store_unavailable") from None

    def _translated(self, body: Mapping[str, Any], before: list[Any], tenant: str, size: int) -> Exchange:
        options = responses_request.chat_options(body, self._strict)
        items = responses_request.input_items(body)
        messages = responses_request.messages_of(body, before, items)
        echoed = body if size <= LARGE_BODY else {name: value for name, value in body.items() if name not in _LONG}
        answer = ResponseAnswer(echoed, uuid4().hex, body.get("model") or self._served_name)
        store = None if body.get("store") is False else self._store
        return _ResponseExchange(options, messages, answer, store, tenant, [*before, *items])


class _ResponseExchange(TranslatedExchange):
    """Keeps the response before the client hears that it is there. Where that fails, the response says that it is not stored."""

    def __init__(
        self,
        options: Mapping[str, Any],
        messages: Sequence[Placed],
        answer: ResponseAnswer,
        store: ResponseStore | None,
        tenant: str,
        items: list[Any],
    ) -> None:
        super().__init__(options, messages, answer)
        self._answer = answer
        self._store = store
        self._tenant = tenant
        self._items = items

    async def ended(self) -> None:
        if self._store is None:
            return
        response = self._answer.response
        try:
            response["store"] = await self._store.put(self._tenant, StoredResponse(response, self._items))
        except CacheUnavailable as error:
            response["store"] = False
            logger.warning("a response was not stored: %s", error)


@dataclass(frozen=True)
class Apis:
    chat: Api
    completion: Api
    responses: ResponsesApi
    messages: Api

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
        }


def is_response_id(name: str) -> bool:
    """As this service makes them."""
    return _ID.fullmatch(name) is not None
