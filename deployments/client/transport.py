"""How the client's calls reach the service, and how by HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
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


class Transport(Protocol):
    """`endpoint` is "chat" or "completion"; the bodies and answers are those of HTTP. All raise ApiError."""

    def generate(self, endpoint: str, body: Mapping[str, Any]) -> dict[str, Any]: ...

    def stream(self, endpoint: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]: ...

    def register_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]: ...

    def list_grammars(self, after: str = "") -> dict[str, Any]: ...

    def delete_grammar(self, name: str) -> dict[str, Any]: ...


class HttpTransport:
    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def generate(self, endpoint: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _answer(self._client.post(PATHS[endpoint], json=dict(body)))

    def stream(self, endpoint: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        with self._client.stream("POST", PATHS[endpoint], json={**body, "stream": True}) as response:
            if response.is_error:
                response.read()
            _raise_for(response)
            yield from parse_events(response.iter_lines())

    def register_grammar(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return _answer(self._client.post(GRAMMARS, json=dict(body)))

    def list_grammars(self, after: str = "") -> dict[str, Any]:
        return _answer(self._client.get(GRAMMARS, params={"after": after}))

    def delete_grammar(self, name: str) -> dict[str, Any]:
        return _answer(self._client.delete(f"{GRAMMARS}/{quote(name, safe='')}"))


def parse_events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects of a server-sent event stream, up to its end mark."""
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == DONE:
            return
        yield json.loads(data)


def _answer(response: httpx.Response) -> dict[str, Any]:
    _raise_for(response)
    answer: dict[str, Any] = response.json()
    return answer


def _raise_for(response: httpx.Response) -> None:
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
    )
