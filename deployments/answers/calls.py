"""Calls by Ray Serve whose answers have their own way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from ray.serve.handle import DeploymentResponse, DeploymentResponseGenerator

from deployments.answers.frames import ReplyTo
from deployments.answers.receiver import AnswerReceiver, IncomingAnswer
from deployments.errors import AnswerLost

Call: TypeAlias = Callable[[ReplyTo], DeploymentResponse[Any] | DeploymentResponseGenerator[Any]]
"""What asks for an answer: a handle's, which does not stream."""
LAST_FRAME_S = 5.0
"""For what has been said before a call ended, and has not come yet."""


class AnsweredCalls:
    """Ray Serve finds who is called, and carries the call, its faults and its end; `receiver` takes the answers in."""

    def __init__(self, receiver: AnswerReceiver) -> None:
        self._receiver = receiver
        self._followed: set[asyncio.Task[None]] = set()

    @contextmanager
    def answer(self, call: Call) -> Iterator[IncomingAnswer]:
        """What comes of a call. Whatever ends it without an answer ends the answer; an answer that is left early ends the call."""
        with self._receiver.expect() as answer:
            response = cast(DeploymentResponse[Any], call(answer.reply_to))
            task = asyncio.create_task(_follow(response, answer))
            self._followed.add(task)  # the event loop alone would not keep it
            task.add_done_callback(self._followed.discard)
            try:
                yield answer
            finally:
                if not answer.is_complete:
                    response.cancel()


async def _follow(response: DeploymentResponse[Any], answer: IncomingAnswer) -> None:
    try:
        await response
    except BaseException as error:  # noqa: BLE001  # whoever reads the answer is told
        # Without the traceback there is no reference cycle: error, traceback, this frame, answer. It would keep the request's body.
        answer.fail(error.with_traceback(None))
    else:
        if not answer.is_complete:
            asyncio.get_running_loop().call_later(LAST_FRAME_S, answer.fail, AnswerLost("the end of the answer is lost"))
