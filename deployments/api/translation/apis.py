"""The APIs that are spoken over HTTP and by handle: what each makes of a request, and of an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from deployments.access.caller import Caller
from deployments.api.bounds.request_limits import LARGE_BODY
from deployments.api.translation import messages_request
from deployments.api.translation.exchange import Exchange, Reserve, TranslatedExchange, unbounded
from deployments.api.translation.messages_answer import MessageAnswer, TokenCount, error_body
from deployments.api.translation.responses_api import ResponsesApi
from deployments.errors import ApiError, bad_request
from grammar_service.sandbox.background_thread import BackgroundThread
from model_service.messages import Endpoint


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
