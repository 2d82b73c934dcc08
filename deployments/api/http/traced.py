"""The span of a whole HTTP request: from its headers to the last byte of its answer."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.tracing.tracing import HEADER, Span, Tracing, code_of

PATHS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"})
"""What an engine answers; names of spans are made of them."""
_HEADER = HEADER.encode()


class TracedHttp:
    """An ASGI application in front of another one. A `traceparent` of the client's decides whether the request is traced; the answer has
    that of its own span, by which it is found."""

    def __init__(self, application: ASGIApp, tracing: Tracing) -> None:
        self._application = application
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self._application(scope, receive, send)
            return
        span = self._tracing.span(f"{scope['method']} {scope['path']}", "server", traceparent(scope["headers"]))
        try:
            with span.current():
                await self._application(scope, receive, _Telling(send, span))
        except BaseException as error:
            span.fail(code_of(error))
            raise
        finally:
            span.end()


class _Telling:
    """Tells the span of the answer's head, and the head of the span."""

    def __init__(self, send: Send, span: Span) -> None:
        self._send = send
        self._span = span

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status = int(message["status"])
            self._span.standard("http.response.status_code", status)
            if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                self._span.fail(str(status))
            message = {**message, "headers": [*message.get("headers", ()), (_HEADER, self._span.traceparent.encode())]}
        await self._send(message)


def traceparent(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Of a request's headers; empty where there is none, or more than one."""
    found = [value for name, value in headers if name == _HEADER]
    return found[0].decode("latin-1") if len(found) == 1 else ""
