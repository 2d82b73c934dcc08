"""Bodies as they come in: each within a size and a time, all together, and what is made of them, within a memory that tenants share."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.requests import Request

from deployments.api.bounds.admission import AdmissionQueue
from deployments.api.bounds.places import Places
from deployments.errors import INGRESS_BUSY, ApiError, unavailable

WIDEST = 4
"""Bytes of a character in a text that has one beyond the Basic Multilingual Plane (PEP 393)."""
UNQUEUED_BYTES = 64 << 10
"""The first bytes of a body, whose pieces do not queue."""
DIGITS = 18
"""Of a `Content-Length` that are read, since the time to read a number grows with the square of its digits."""
VALUE_BYTES = 64
"""Of a value in Python, and of its place in its array or object; commas, colons and brackets tell how many there are, or more."""


class HeldBody:
    """A body that comes. Memory for it and for what is made of it is reserved until `release`, which must be called."""

    def __init__(self, memory: Places, tenant: str) -> None:
        self.raw = bytearray()
        self._memory = memory
        self._tenant = tenant
        self._reserved = 0

    def reserve(self, number: int) -> None:
        """So many bytes in all. Raises ApiError (503): other bodies take all the memory that the tenant may have."""
        if (more := number - self._reserved) <= 0:
            return
        if not self._memory.has_room_for(self._tenant, more):
            raise unavailable("The service is full; try again in a moment.", INGRESS_BUSY)
        self._memory.take(self._tenant, more)
        self._reserved = number

    def reserve_beside(self, raw: bytes) -> None:
        """Reserves memory for more JSON that is read for this request, and for its values. Raises as `reserve`."""
        self.reserve(self._reserved + built_bytes(raw) + len(raw) * (WIDEST if is_wide(raw) else 1))

    def release(self) -> None:
        """Once is enough."""
        self._memory.give_back(self._tenant, self._reserved)
        self._reserved = 0


class BodyReader:
    """One ingress's. Sizes in bytes; `timeout_s` for one body to come; `most_held` for all that are read or answered. Pieces of large
    bodies queue with new requests (`admissions`): without that, those of a hundred make an iteration of the event loop last 15 ms."""

    def __init__(self, max_bytes: int, timeout_s: float, most_held: int, admissions: AdmissionQueue) -> None:
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._admissions = admissions
        self._memory = Places(most_held)

    @property
    def held(self) -> int:
        return len(self._memory)

    def hold(self, tenant: str) -> HeldBody:
        """An empty one, for a request without a body."""
        return HeldBody(self._memory, tenant)

    async def read(self, request: Request, tenant: str = "") -> HeldBody:
        """Raises ApiError: 413, 408, or 503 where other bodies take all the memory that the tenant may have; ClientDisconnect."""
        declared = _length(request.headers.get("content-length", ""))
        if declared > self._max_bytes:
            raise self._too_large()
        body, needed, wide = self.hold(tenant), 0, False
        try:
            # Before any of it is read: many bodies that have room for their beginnings and not for their ends would all be read in vain.
            body.reserve(2 * declared)
            async with asyncio.timeout(self._timeout_s):
                async for chunk in request.stream():
                    if len(body.raw) + len(chunk) > self._max_bytes:
                        raise self._too_large()
                    needed += len(chunk) + built_bytes(chunk)
                    body.reserve(needed)
                    wide = wide or is_wide(body.raw[-1:] + chunk)  # an escape may begin at the end of a piece
                    body.raw += chunk
                    if len(body.raw) >= UNQUEUED_BYTES:
                        await self._admissions.admit(tenant)
            body.reserve(needed + (len(body.raw) * (WIDEST - 1) if wide else 0))
        except TimeoutError:
            body.release()
            message = f"The request body did not come within {self._timeout_s:g} s."
            raise ApiError(HTTPStatus.REQUEST_TIMEOUT, message, code="body_timeout") from None
        except BaseException:
            body.release()
            raise
        return body

    def _too_large(self) -> ApiError:
        limit = f"{self._max_bytes / 2**20:g} MiB"
        return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request body is over the limit of {limit}.", code="body_too_large")


def _length(text: str) -> int:
    """Of a `Content-Length`: 0 where it is no number, and at least 10^17 where it is a long one."""
    return int(text[:DIGITS]) if text.isdecimal() else 0


def built_bytes(chunk: bytes) -> int:
    """What the values in a part of a body take, about, and no less than most do, where no character is wide."""
    # NumPy would give the interpreter's lock away four times, and get it back after other threads' work.
    values = len(chunk) - len(chunk.translate(None, b",:[{"))
    return len(chunk) + VALUE_BYTES * values


def is_wide(chunk: bytes | bytearray) -> bool:
    """Whether a character may take `WIDEST` bytes; then all characters of its text do."""
    return not chunk.isascii() or (b"\\" in chunk and b"\\u" in chunk)
