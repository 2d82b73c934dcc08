"""Bodies come within their size, their time and the memory of all."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from deployments.api.bounds.admission import AdmissionQueue
from deployments.api.bounds.body import parse_body
from deployments.api.bounds.reading import UNQUEUED_BYTES, WIDEST, BodyReader, built_bytes, is_wide
from deployments.config import LimitSettings
from deployments.errors import ApiError

MOST = 1 << 20


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


async def read(reader: BodyReader, asked: Request, tenant: str = "") -> bytes:
    """And ended: its memory is free again."""
    body = await reader.read(asked, tenant)
    body.release()
    return bytes(body.raw)


async def code_of(reader: BodyReader, asked: Request) -> str:
    with pytest.raises(ApiError) as caught:
        await reader.read(asked)
    return caught.value.code


async def test_a_body_in_pieces_is_whole() -> None:
    reader = BodyReader(10, 60, MOST, AdmissionQueue())
    assert await read(reader, request(pieces(b"12345", b"67890"))) == b"1234567890"
    assert await read(reader, request(pieces())) == b""
    assert reader.held == 0


@pytest.mark.parametrize("length", ["", "11", "99999999999999999999", "5"])
async def test_a_large_body_is_refused_whatever_it_says_of_itself(length: str) -> None:
    reader = BodyReader(10, 60, MOST, AdmissionQueue())
    assert await code_of(reader, request(pieces(b"12345", b"678901"), length)) == "body_too_large"
    assert reader.held == 0


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    reader = BodyReader(10, 0.01, MOST, AdmissionQueue())
    assert await code_of(reader, request(pieces(b"1", then=asyncio.Event()))) == "body_timeout"
    assert reader.held == 0


async def test_bodies_that_come_slowly_leave_others_their_memory() -> None:
    reader, rest = BodyReader(10, 60, 56, AdmissionQueue()), asyncio.Event()
    begun = [asyncio.Event() for _ in range(3)]
    slow = [asyncio.create_task(read(reader, request(pieces(b"12345678", taken=taken, then=rest)))) for taken in begun]
    await asyncio.gather(*(taken.wait() for taken in begun))
    assert await code_of(reader, request(pieces(b"12345"))) == "ingress_busy"
    assert await read(reader, request(pieces(b"1"))) == b"1"
    rest.set()
    assert await asyncio.gather(*slow) == [b"12345678"] * 3
    assert reader.held == 0


async def test_one_tenant_leaves_others_memory() -> None:
    """However many bodies it has begun."""
    reader, rest = BodyReader(10, 60, 160, AdmissionQueue()), asyncio.Event()
    begun = [asyncio.Event() for _ in range(9)]
    slow = [asyncio.create_task(read(reader, request(pieces(b"12345678", taken=taken, then=rest)), "flood")) for taken in begun]
    await asyncio.gather(*(taken.wait() for taken in begun))
    with pytest.raises(ApiError) as caught:
        await reader.read(request(pieces(b"1")), "flood")
    assert caught.value.code == "ingress_busy"
    assert await read(reader, request(pieces(b"1234")), "neighbour") == b"1234"
    rest.set()
    assert await asyncio.gather(*slow) == [b"12345678"] * 9
    assert reader.held == 0


async def test_a_body_that_has_come_takes_memory_until_its_request_ends() -> None:
    reader = BodyReader(100, 60, 250, AdmissionQueue())
    waiting = await reader.read(request(pieces(b"1" * 100)))
    assert reader.held == 200
    assert await code_of(reader, request(pieces(b"1" * 30))) == "ingress_busy"
    waiting.release()
    waiting.release()
    assert reader.held == 0
    assert await read(reader, request(pieces(b"1" * 100)))


async def test_bodies_that_come_side_by_side_are_not_all_read_in_vain() -> None:
    """Which none of them would be that finds room for its first half, and none for its second."""
    reader, rest = BodyReader(100, 60, 250, AdmissionQueue()), asyncio.Event()
    first = asyncio.create_task(read(reader, request(halves(rest), "100")))
    await asyncio.sleep(0)
    assert await code_of(reader, request(halves(rest), "100")) == "ingress_busy"
    rest.set()
    assert await first == b"1" * 100
    assert reader.held == 0


async def halves(then: asyncio.Event) -> AsyncIterator[bytes]:
    yield b"1" * 50
    await then.wait()
    yield b"1" * 50


@pytest.mark.parametrize(
    "value",
    [
        list(range(1000, 40_000)),
        [{"a": number} for number in range(1000, 20_000)],
        [[] for _ in range(20_000)],
        {f"w{number}": {"type": "string"} for number in range(10_000)},
        "a" * 300_000 + "\U0001f600",
    ],
)
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_what_is_made_of_a_body_takes_no_more_than_is_set_aside(value: Any, ensure_ascii: bool) -> None:
    raw = json.dumps({"metadata": value}, ensure_ascii=ensure_ascii, separators=(",", ":")).encode()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    body = parse_body(raw, LimitSettings())
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert body
    assert taken <= 1.2 * (built_bytes(raw) + len(raw) * (WIDEST if is_wide(raw) else 1))


async def test_memory_is_set_aside_for_wide_characters_whose_escapes_are_cut() -> None:
    reader = BodyReader(100, 60, MOST, AdmissionQueue())
    await reader.read(request(pieces(b'"a\\ud83d\\ude00"')))
    whole = reader.held
    await reader.read(request(pieces(b'"a\\', b"ud83d\\", b'ude00"')))
    assert reader.held == 2 * whole


async def test_who_leaves_in_the_middle_leaves_nothing() -> None:
    reader = BodyReader(10, 60, MOST, AdmissionQueue())
    with pytest.raises(ClientDisconnect):
        await reader.read(request(pieces(b"123", None)))
    assert reader.held == 0


async def test_pieces_of_large_bodies_are_read_by_turns() -> None:
    """However many come at once."""
    reader, read_pieces = BodyReader(1 << 30, 60, 1 << 30, AdmissionQueue()), [0] * 20

    async def large(number: int) -> AsyncIterator[bytes]:
        for _ in range(10):
            read_pieces[number] += 1
            yield b"1" * UNQUEUED_BYTES

    flood = [asyncio.create_task(read(reader, request(large(number)), "flood")) for number in range(20)]
    for _ in range(50):
        await asyncio.sleep(0)
    assert sum(read_pieces) <= 20 + 50
    small = asyncio.create_task(read(reader, request(pieces(b"1", b"2")), "light"))
    await asyncio.sleep(0)
    assert small.done()
    assert {len(body) for body in await asyncio.gather(*flood)} == {10 * UNQUEUED_BYTES}
