"""Rejects requests before any key is checked: those of web pages, and those whose headers are invalid or too large.

A page in a user's browser can make it send requests to services of the user's machine. It cannot give them the type `application/json`
without asking first (Fetch standard, CORS-safelisted request headers), which nobody here answers; and where its own name is made to lead to
that machine (DNS rebinding), the name stands in `Host`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus

from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.api.http.ingress import JSON, error_response
from deployments.config import Settings
from deployments.errors import ApiError

Headers = Iterable[tuple[bytes, bytes]]
OWN_NAME = "localhost"


@dataclass(frozen=True, slots=True)
class RequestRules:
    """`hosts` are the names that are answered to, beside addresses and localhost; None: all."""

    hosts: frozenset[str] | None
    max_header_bytes: int

    @classmethod
    def of(cls, settings: Settings) -> RequestRules:
        """Whoever listens to his own machine alone is behind no name that others gave him."""
        named = frozenset(map(_bare, settings.http.allowed_hosts))
        return cls(named if named or is_loopback(settings.http.host) else None, settings.limits.max_header_kib << 10)


class RequestFilter:
    """An ASGI application in front of another one."""

    def __init__(self, application: ASGIApp, rules: RequestRules) -> None:
        self._application = application
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._application
        if scope["type"] == "http" and (error := refusal(scope["method"], scope["headers"], self._rules)):
            answer = error_response(error)
        await answer(scope, receive, send)


def refusal(method: str, headers: Sequence[tuple[bytes, bytes]], rules: RequestRules) -> ApiError | None:
    """Why the request is not looked at; `headers` with names in lower case, as in ASGI."""
    if sum(len(name) + len(value) for name, value in headers) > rules.max_header_bytes:
        message = f"The headers are over the limit of {rules.max_header_bytes >> 10} KiB."
        return ApiError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message, code="headers_too_large")
    if rules.hosts is not None and not all(_is_known(host, rules.hosts) for host in _values(headers, b"host")):
        message = "This service does not answer to that name. The setting http.allowed_hosts lists those that it answers to."
        return ApiError(HTTPStatus.MISDIRECTED_REQUEST, message, code="host_not_allowed")
    if method == "POST" and [kind.partition(";")[0].strip().lower() for kind in _values(headers, b"content-type")] != [JSON]:
        message = "Send JSON, with 'Content-Type: application/json'."
        return ApiError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message, code="unsupported_media_type")
    return None


def _values(headers: Headers, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


@lru_cache(256)  # the same few names in all requests
def _is_known(host: str, names: frozenset[str]) -> bool:
    # What is written as an address was not looked up under a name that somebody else decides about.
    name = _bare(host)
    return name in names or name == OWN_NAME or name.endswith(f".{OWN_NAME}") or _is_address(name)


def _bare(host: str) -> str:
    """Without a port and a final dot."""
    name = host.strip().lower()
    name = name[1 : name.find("]")] if name.startswith("[") else name.partition(":")[0]
    return name.removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    return host == OWN_NAME or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
