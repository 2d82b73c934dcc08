"""Pieces are joined while the reader is busy, never lost, and never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from model_service.coalesce import coalesced


async def pieces(*texts: str) -> AsyncGenerator[str, None]:
    for text in texts:
        yield text


async def test_text_is_the_same_in_fewer_pieces() -> None:
    got = [piece async for piece in coalesced(pieces("a", "b", "c"))]
    assert "".join(got) == "abc"
    assert len(got) < 3


async def test_a_piece_does_not_wait_for_the_next() -> None:
    gate = asyncio.Event()

    async def slow() -> AsyncGenerator[str, None]:
        yield "first"
        await gate.wait()
        yield "second"

    stream = coalesced(slow())
    assert await anext(stream) == "first"
    gate.set()
    assert [piece async for piece in stream] == ["second"]


async def test_a_failure_comes_after_what_was_said_before_it() -> None:
    async def failing() -> AsyncGenerator[str, None]:
        yield "said"
        raise ValueError("broken")

    stream = coalesced(failing())
    assert await anext(stream) == "said"
    with pytest.raises(ValueError, match="broken"):
        await anext(stream)


async def test_a_reader_that_leaves_ends_the_source() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[str, None]:
        try:
            while True:
                yield "x"
                await asyncio.sleep(0)
        finally:
            ended.set()

    source = endless()
    stream = coalesced(source)
    await anext(stream)
    await stream.aclose()
    await source.aclose()
    assert ended.is_set()
