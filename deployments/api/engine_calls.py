"""Calls of the model replicas. One in this process is simply asked. For all others, Ray Serve finds the replica and carries the call, its
faults and its end; the answer has its own way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol, cast

from ray.serve.exceptions import BackPressureError
from ray.serve.handle import DeploymentHandle, DeploymentResponse

from deployments.answers.receiver import AnswerReceiver, IncomingAnswer
from deployments.errors import AnswerLost
from model_service.messages import Call, Failure, Head
from model_service.replica import ModelReplica

LAST_FRAME_S = 5.0
"""For what a replica has said before its call ended, and has not come yet."""


class Engines(Protocol):
    """Who is asked for answers."""

    def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        """What `ModelReplica.respond` answers. `key` is what the router groups by. Closed early, it frees the sequence.

        Raises:
            AnswerLost, or what Ray Serve raises of a call.
        """


class OwnEngine:
    """The replica of this process; it works on so many calls at a time, and so many may wait."""

    def __init__(self, replica: ModelReplica, most_ongoing: int, most_waiting: int) -> None:
        self._replica = replica
        self._room = asyncio.Semaphore(most_ongoing)
        self._most_waiting = most_waiting
        self._waiting = 0

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        await self._enter()
        try:
            async with aclosing(self._replica.respond(call)) as items:
                async for item in items:
                    yield item
        finally:
            self._room.release()

    async def _enter(self) -> None:
        """Raises BackPressureError, as Ray Serve would."""
        if self._room.locked() and self._waiting >= self._most_waiting:
            raise BackPressureError(num_queued_requests=self._waiting, max_queued_requests=self._most_waiting)
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1


class EngineCalls:
    """`models` is the handle of the model replicas; `receiver` takes their answers in."""

    def __init__(self, models: DeploymentHandle[Any], receiver: AnswerReceiver) -> None:
        # By gRPC: handles keep what their maker's environment says, not this process's (Ray Serve 2.60). Calls are plain data.
        self._models = models.options(method_name="respond", _by_reference=False, request_serialization="pickle")
        self._receiver = receiver
        self._calls: set[asyncio.Task[None]] = set()

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        with self._receiver.expect() as answer:
            response = cast(DeploymentResponse[Any], self._models.options(session_id=key).remote(call, answer.reply_to))
            task = asyncio.create_task(_follow(response, answer))
            self._calls.add(task)  # the event loop alone would not keep it
            task.add_done_callback(self._calls.discard)
            try:
                async for item in answer:
                    yield item
            finally:
                if not answer.is_complete:
                    response.cancel()


async def _follow(response: DeploymentResponse[Any], answer: IncomingAnswer) -> None:
    """Whatever ends the call without an answer ends the answer."""
    try:
        await response
    except BaseException as error:  # noqa: BLE001  # whoever reads the answer is told
        answer.fail(error)
    else:
        if not answer.is_complete:
            asyncio.get_running_loop().call_later(LAST_FRAME_S, answer.fail, AnswerLost("the end of the answer is lost"))
