"""How the client's calls reach the service, and how by HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from deployments.errors import ApiError

PATHS = {
    "chat": "/v1/chat/completions",
    "completion": "/v1/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
GRAMMARS = "/v1/grammars"
DONE = "[DONE]"
MAX_RETRIES = 2
_LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
MAX_WAIT_S = 60
"""A service that asks for more is not asked again."""


class Transport(Protocol):
    """`endpoint` is "chat" or "completion"; the bodies and answers are those of HTTP. All raise ApiError."""

    def generate(self, endpoint: str, body: Mapping[str, Any]) -> dict[str, Any]: ...

    def stream(self, endpoint: str, body: Mapping[str, Any]) -> Generator[dict[str, Any]]: ...

    def register_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]: ...

    def list_grammars(self, after: str = "") -> dict[str, Any]: ...

    def delete_grammar(self, name: str) -> dict[str, Any]: ...


class HttpTransport:
    """`max_retries`: of a request that the service has not begun."""

    def __init__(self, client: httpx.Client, max_retries: int = MAX_RETRIES) -> None:
        self._client = client
        self._max_retries = max_retries

    def generate(self, endpoint: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._sent(endpoint, body) as response:
            response.read()
            return answer_of(response)

    def stream(self, endpoint: str, body: Mapping[str, Any]) -> Generator[dict[str, Any]]:
        with self._sent(endpoint, {**body, "stream": True}) as response:
            if response.is_error:
                response.read()
            raise_for(response)
            yield from parse_events(response.iter_lines())

    def register_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return answer_of(self._client.post(GRAMMARS, json=dict(body)))

    def list_grammars(self, after: str = "") -> dict[str, Any]:
        return answer_of(self._client.get(GRAMMARS, params={"after": after}))

    def delete_grammar(self, name: str) -> dict[str, Any]:
        return answer_of(self._client.delete(f"{GRAMMARS}/{quote(name, safe='')}"))

    @contextmanager
    def _sent(self, endpoint: str, body: Mapping[str, Any]) -> Iterator[httpx.Response]:
        for attempt in count():
            with self._client.stream("POST", PATHS[endpoint], json=dict(body)) as response:
                wait_s = retry_wait_s(response.status_code, retry_after_s(response)) if attempt < self._max_retries else None
                if wait_s is None:
                    yield response
                    return
            time.sleep(wait_s)


def authorization(api_key: str | None) -> dict[str, str]:
    """The header that tells the key."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def retry_wait_s(status: int, header_s: int | None) -> float | None:
    """Seconds after which the same request may be sent again. None: it has been begun, or would be refused again. `header_s`: of
    `Retry-After`, which the service sends where it has not begun a request."""
    return header_s if header_s is not None and status in _LATER and header_s <= MAX_WAIT_S else None


def retry_after_s(response: httpx.Response) -> int | None:
    """What its header says in seconds; None: nothing, or a date."""
    told = response.headers.get("retry-after", "")
    return int(told) if told.isdigit() else None


def parse_events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects of a server-sent event stream."""
    return filter(None, map(event_of, lines))


def event_of(line: str) -> dict[str, Any] | None:
    """The JSON object of a line of a server-sent event stream; None: it has none, as the mark at its end."""
    data = line.removeprefix("data:").strip()
    if not line.startswith("data:") or data == DONE:
        return None
    event: dict[str, Any] = json.loads(data)
    return event


def answer_of(response: httpx.Response) -> dict[str, Any]:
    raise_for(response)
    answer: dict[str, Any] = response.json()
    return answer


def raise_for(response: httpx.Response) -> None:
    if not response.is_error:
        return
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = {"message": response.text}
    raise ApiError(
        response.status_code,
        str(error.get("message")),
        code=str(error.get("code")),
        param=error.get("param"),
        kind=str(error.get("type")),
        retry_after_s=retry_after_s(response),
    )
