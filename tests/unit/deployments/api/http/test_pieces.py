"""Answers that are sent in pieces."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from deployments.api.http.pieces import PIECE, PiecewiseResponse


def response(content: bytes, ended: list[bool]) -> PiecewiseResponse:
    async def end() -> None:
        ended.append(True)

    return PiecewiseResponse(content, 200, {"x-kept": "1"}, "application/json", end, timeout_s=60)


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE])
async def test_each_piece_is_sent_when_the_one_before_has_gone_out(size: int) -> None:
    content, sent, ended = bytes(range(256)) * (size // 256) + b"x" * (size % 256), list[Any](), list[bool]()

    async def send(message: Any) -> None:
        assert not ended
        sent.append(message)

    await response(content, ended)({}, None, send)  # type: ignore[arg-type]  # it receives nothing
    head, *pieces = sent
    assert (b"x-kept", b"1") in head["headers"]
    assert (b"content-length", str(size).encode()) in head["headers"]
    assert b"".join(piece["body"] for piece in pieces) == content
    assert all(len(piece["body"]) <= PIECE for piece in pieces)
    assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert ended == [True]


async def test_it_ends_where_the_client_has_left_too() -> None:
    ended = list[bool]()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await response(b"x" * PIECE * 3, ended)({}, None, send)  # type: ignore[arg-type]
    assert ended == [True]


async def test_a_client_that_takes_nothing_is_given_up() -> None:
    ended = list[bool]()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive() -> Any:
        raise AssertionError("nothing is received")

    async def end() -> None:
        ended.append(True)

    response = PiecewiseResponse(b"x" * PIECE * 3, 200, {}, "application/json", end, timeout_s=0.01)
    await response({}, receive, send)
    assert ended == [True]
