"""Bodies come within their size, their time and the memory of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from deployments.api.bounds.reading import BodyReader
from deployments.errors import ApiError


def request(pieces: AsyncIterator[bytes | None], length: str = "") -> Request:
    """A POST whose body comes in pieces, None where the client leaves."""

    async def receive() -> Message:
        piece = await anext(pieces, b"")
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    return Request({"type": "http", "method": "POST", "headers": [(b"content-length", length.encode())] if length else []}, receive)


async def pieces(*some: bytes | None, taken: asyncio.Event | None = None, then: asyncio.Event | None = None) -> AsyncIterator[bytes | None]:
    """Sets `taken` when they have been, and goes on after `then`."""
    for piece in some:
        yield piece
    if taken is not None:
        taken.set()
    if then is not None:
        await then.wait()


async def code_of(reader: BodyReader, asked: Request) -> str:
    with pytest.raises(ApiError) as caught:
        await reader.read(asked)
    return caught.value.code


async def test_a_body_in_pieces_is_whole() -> None:
    reader = BodyReader(10, 60)
    assert await reader.read(request(pieces(b"12345", b"67890"))) == b"1234567890"
    assert await reader.read(request(pieces())) == b""
    assert reader.held == 0


@pytest.mark.parametrize("length", ["", "11", "99999999999999999999", "5"])
async def test_a_large_body_is_refused_whatever_it_says_of_itself(length: str) -> None:
    reader = BodyReader(10, 60)
    assert await code_of(reader, request(pieces(b"12345", b"678901"), length)) == "body_too_large"
    assert reader.held == 0


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    reader = BodyReader(10, 0.01)
    assert await code_of(reader, request(pieces(b"1", then=asyncio.Event()))) == "body_timeout"
    assert reader.held == 0


async def test_bodies_that_come_slowly_leave_others_their_memory() -> None:
    reader, rest = BodyReader(10, 60, most_held=25), asyncio.Event()
    begun = [asyncio.Event() for _ in range(3)]
    slow = [asyncio.create_task(reader.read(request(pieces(b"12345678", taken=taken, then=rest)))) for taken in begun]
    await asyncio.gather(*(taken.wait() for taken in begun))
    assert await code_of(reader, request(pieces(b"12"))) == "ingress_busy"
    assert await reader.read(request(pieces(b"1"))) == b"1"
    rest.set()
    assert await asyncio.gather(*slow) == [b"12345678"] * 3
    assert reader.held == 0


async def test_one_tenant_leaves_others_memory() -> None:
    """However many bodies it has begun."""
    reader, rest = BodyReader(10, 60, most_held=80), asyncio.Event()
    begun = [asyncio.Event() for _ in range(9)]
    slow = [asyncio.create_task(reader.read(request(pieces(b"12345678", taken=taken, then=rest)), "flood")) for taken in begun]
    await asyncio.gather(*(taken.wait() for taken in begun))
    with pytest.raises(ApiError) as caught:
        await reader.read(request(pieces(b"1")), "flood")
    assert caught.value.code == "ingress_busy"
    assert await reader.read(request(pieces(b"12345678")), "neighbour") == b"12345678"
    rest.set()
    assert await asyncio.gather(*slow) == [b"12345678"] * 9
    assert reader.held == 0


async def test_who_leaves_in_the_middle_leaves_nothing() -> None:
    reader = BodyReader(10, 60)
    with pytest.raises(ClientDisconnect):
        await reader.read(request(pieces(b"123", None)))
    assert reader.held == 0
