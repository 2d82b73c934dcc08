from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from load_tests.front_door.clients.closed_loop import overlap, run_course
from load_tests.front_door.clients.messages import Answered, Course, Report, WindowBegan, WindowEnded


class Door:
    """An HTTP server that streams an answer of two pieces, and closes the connection after it when it is told to."""

    def __init__(self) -> None:
        self.connections = 0
        self.bodies: list[bytes] = []
        self.keep_alive = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.bodies.append(await reader.readexactly(length))
                close = b"" if self.keep_alive else b"Connection: close\r\n"
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + close + b"\r\n")
                for data in (_event("a", None), _event("b", "stop"), b"data: [DONE]\n\n"):
                    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                writer.write(b"0\r\n\r\n")
                if not self.keep_alive:
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()


def _event(text: str, finish: str | None) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": finish}]}).encode() + b"\n\n"


@pytest.fixture
async def door() -> AsyncIterator[tuple[Door, int]]:
    door = Door()
    server = await asyncio.start_server(door.serve, "127.0.0.1", 0)
    async with server:
        yield door, server.sockets[0].getsockname()[1]


async def test_without_a_window_each_question_is_asked_once(door: tuple[Door, int]) -> None:
    told: list[Report] = []
    bodies = [b'{"n": %d}' % number for number in range(10)]
    await run_course(Course("127.0.0.1", door[1], bodies, 4, stream=True, seconds=None), told.append)
    began, ended, answered = told
    assert isinstance(began, WindowBegan)
    assert isinstance(ended, WindowEnded)
    assert isinstance(answered, Answered)
    assert all(0 < answer.latency_s <= ended.seconds for answer in answered.answers)
    assert sorted(answer.body for answer in answered.answers) == list(range(10))
    assert {answer.text for answer in answered.answers} == {"ab"}
    assert (sorted(door[0].bodies), door[0].connections) == (sorted(bodies), 4)


async def test_what_ends_within_the_window_counts(door: tuple[Door, int]) -> None:
    told: list[Report] = []
    await run_course(Course("127.0.0.1", door[1], [b"{}", b"{ }"], 3, stream=True, seconds=0.05), told.append)
    began, ended, answered = told
    assert isinstance(began, WindowBegan)
    assert isinstance(ended, WindowEnded)
    assert isinstance(answered, Answered)
    assert ended.seconds >= 0.05
    assert 0 < len(answered.answers) <= len(door[0].bodies)
    assert sum(answer.ended for answer in answered.answers) >= len(answered.answers) - 3
    assert door[0].connections == 3


async def test_a_connection_that_the_server_closes_is_opened_again(door: tuple[Door, int]) -> None:
    door[0].keep_alive = False
    told: list[Report] = []
    await run_course(Course("127.0.0.1", door[1], [b"{}"] * 3, 1, stream=True, seconds=None), told.append)
    answered = told[-1]
    assert isinstance(answered, Answered)
    assert [answer.text for answer in answered.answers] == ["ab"] * 3
    assert door[0].connections == 3


@pytest.mark.parametrize(("start", "end", "share"), [(1, 3, 1.0), (-1, 1, 0.5), (3, 5, 0.5), (-2, 8, 0.4), (5, 6, 0.0), (2, 2, 1.0)])
def test_a_request_is_within_the_window_by_its_time(start: float, end: float, share: float) -> None:
    assert overlap(start, end, 0, 4) == share
