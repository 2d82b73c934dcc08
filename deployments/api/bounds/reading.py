"""Bodies as they come in: each within a size and a time, all together within a memory that tenants share."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.requests import Request

from deployments.api.bounds.places import Places
from deployments.errors import ApiError, unavailable

MOST_HELD = 256 << 20
"""Bytes of bodies that have begun to come: with two thousand requests that send theirs slowly, it would be gibibytes."""


class BodyReader:
    """One ingress's. Sizes in bytes; `timeout_s` for one body to come."""

    def __init__(self, max_bytes: int, timeout_s: float, most_held: int = MOST_HELD) -> None:
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._memory = Places(most_held)

    @property
    def held(self) -> int:
        return len(self._memory)

    async def read(self, request: Request, tenant: str = "") -> bytes:
        """Raises ApiError: 413, 408, or 503 where other bodies take all the memory that the tenant may have; ClientDisconnect."""
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > self._max_bytes:
            raise self._too_large()
        received = bytearray()
        try:
            async with asyncio.timeout(self._timeout_s):
                async for chunk in request.stream():
                    self._check(tenant, len(received), len(chunk))
                    received += chunk
                    self._memory.take(tenant, len(chunk))
        except TimeoutError:
            message = f"The request body did not come within {self._timeout_s:g} s."
            raise ApiError(HTTPStatus.REQUEST_TIMEOUT, message, code="body_timeout") from None
        finally:
            self._memory.give_back(tenant, len(received))
        return bytes(received)

    def _check(self, tenant: str, size: int, more: int) -> None:
        if size + more > self._max_bytes:
            raise self._too_large()
        if more and not self._memory.has_room_for(tenant, more):
            raise unavailable("The service is full; try again in a moment.", "ingress_busy")

    def _too_large(self) -> ApiError:
        limit = f"{self._max_bytes / 2**20:g} MiB"
        return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request body is over the limit of {limit}.", code="body_too_large")
