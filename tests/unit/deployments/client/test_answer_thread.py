"""Answers for threads that block, over real sockets; what Ray Serve gives for a call is played."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from threading import Event
from typing import Any, cast

import pytest
from ray.serve.handle import DeploymentResponse

from deployments.answers.frames import ReplyTo
from deployments.answers.receiver import AnswerReceiver
from deployments.answers.sender import AnswerSender
from deployments.client.answer_thread import AnswerThread
from deployments.errors import AnswerLost

HERE = "this node"
WAIT_S = 20


class Called:
    """A call that sends its pieces, and then ends as it is told, or never."""

    def __init__(self, pieces: list[str], ends: BaseException | None = None, endless: bool = False) -> None:
        self._pieces = pieces
        self._ends = ends
        self._endless = endless or ends is not None
        self.cancelled = Event()

    def of(self, reply_to: ReplyTo) -> DeploymentResponse[Any]:
        self._sent = asyncio.ensure_future(AnswerSender(HERE).send(reply_to, self._said()))
        return cast(DeploymentResponse[Any], self)

    async def _said(self) -> AsyncGenerator[str, None]:
        for piece in self._pieces:
            yield piece
        if self._endless:
            await asyncio.Event().wait()

    def __await__(self) -> Generator[Any, None, None]:
        if self._ends is not None:
            raise self._ends
        yield from self._sent

    def cancel(self) -> None:
        self.cancelled.set()
        self._sent.cancel()


@pytest.fixture(scope="module")
def thread() -> AnswerThread:
    return AnswerThread(AnswerReceiver(HERE, "127.0.0.1"))


def read(thread: AnswerThread, called: Called) -> str:
    return "".join(thread.pieces(called.of))


def test_pieces_come_in_their_order(thread: AnswerThread) -> None:
    called = Called(["früh", "er"])
    assert read(thread, called) == "früher"
    assert not called.cancelled.is_set()


@pytest.mark.parametrize("error", [AnswerLost("gone"), ValueError("wrong")])
def test_what_ends_the_call_is_raised(thread: AnswerThread, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        read(thread, Called([], error))


def test_nobody_waits_for_a_call_that_was_cancelled(thread: AnswerThread) -> None:
    with pytest.raises(AnswerLost):
        read(thread, Called([], asyncio.CancelledError()))


def test_a_call_whose_reader_leaves_is_cancelled(thread: AnswerThread) -> None:
    called = Called(["a"], endless=True)
    pieces = thread.pieces(called.of)
    assert next(pieces) == "a"
    pieces.close()
    assert called.cancelled.wait(WAIT_S)
