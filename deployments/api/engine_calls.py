"""Calls of the model replicas. One in this process is simply asked. For all others, Ray Serve finds the replica and carries the call, its
faults and its end; the answer has its own way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol

from ray.serve.exceptions import BackPressureError
from ray.serve.handle import DeploymentHandle

from deployments.access.charges import CallCost
from deployments.access.use_elsewhere import UseElsewhere
from deployments.answers.calls import AnsweredCalls
from deployments.answers.receiver import AnswerReceiver
from deployments.api.bounds.room import Room, RoomFull
from model_service.messages import Call
from model_service.replies import Failure, Head
from router.turns.progress import Progress, Routed
from router.turns.seat_line import Guest
from router.turns.shares import PROMPT


class Engines(Protocol):
    """Who is asked for answers."""

    def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        """What `ModelReplica.respond` answers. `key` is what the router groups by. Closed early, it frees the sequence.

        Raises:
            AnswerLost, or what Ray Serve raises of a call.
        """


class Replica(Protocol):
    """A `ModelReplica`, or what stands in front of one."""

    def respond(self, call: Call) -> AsyncGenerator[Head | Failure | str, None]: ...


class OwnEngine:
    """The replica of this process; its engine has so many seats for sequences, and so many calls may wait. What has no seat would wait in
    the engine in front of everybody who comes later, and so waits here, where tenants take turns."""

    def __init__(self, replica: Replica, seats: int, most_waiting: int) -> None:
        self._replica = replica
        self._room = Room(seats, most_waiting)
        self._most_waiting = most_waiting

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        guest = Guest(call.tenant, call.weight, call.prompt_tokens, call.sequences)
        progress, cost = _progress(call), CallCost(call.prompt_tokens, call.answer_tokens)
        began, progress.waits = time.monotonic(), True
        try:
            await self._room.enter(guest)
        except RoomFull:
            # As Ray Serve would.
            raise BackPressureError(num_queued_requests=self._room.waiting, max_queued_requests=self._most_waiting) from None
        progress.went(Routed("", time.monotonic() - began))
        try:
            async with aclosing(self._replica.respond(call)) as items:
                async for item in items:
                    self._room.charge(guest, _more(cost, item))
                    yield item
        except (GeneratorExit, asyncio.CancelledError) as end:
            self._room.charge(guest, _left(cost, call, end))
            raise
        finally:
            self._room.leave(guest)


class EngineCalls:
    """`models` is the handle of the model replicas; `receiver` takes their answers in. `elsewhere` None: no other ingress calls them, or
    nothing can be heard of it."""

    def __init__(self, models: DeploymentHandle[Any], receiver: AnswerReceiver, elsewhere: UseElsewhere | None = None) -> None:
        # By gRPC: handles keep what their maker's environment says, not this process's (Ray Serve 2.60). Calls are plain data.
        self._models = models.options(method_name="respond", _by_reference=False, request_serialization="pickle")
        self._calls = AnsweredCalls(receiver)
        self._elsewhere = elsewhere

    async def ask(self, call: Call, key: str) -> AsyncGenerator[Head | Failure | str, None]:
        progress, prompt_tokens = _progress(call), call.prompt_tokens + call.forced_tokens
        cost = CallCost(prompt_tokens, call.answer_tokens)
        tell = self._heard_elsewhere(call.tenant, progress)
        tell(PROMPT * prompt_tokens)
        call = replace(call, progress=progress)
        with self._calls.answer(partial(self._models.options(session_id=key).remote, call)) as answer:
            try:
                async for item in answer:
                    if more := _more(cost, item):
                        progress.cost(more)
                        tell(more)
                    yield item
            except (GeneratorExit, asyncio.CancelledError) as end:
                if not progress.waits and (more := _left(cost, call, end)):
                    progress.cost(more)
                    tell(more)
                raise

    def _heard_elsewhere(self, tenant: str, progress: Progress) -> Callable[[float], None]:
        """What is to hear of the tokens that a call uses; its router will hear what its tenant has used elsewhere."""
        if self._elsewhere is None or not tenant:
            return lambda _: None
        progress.elsewhere = self._elsewhere
        return partial(self._elsewhere.used, tenant)


def _progress(call: Call) -> Progress:
    return call.progress if isinstance(call.progress, Progress) else Progress()


def _left(cost: CallCost, call: Call, end: BaseException) -> float:
    """What a call costs beyond what has come of it when its client leaves. While the next piece is waited for, a stream that is cut into
    tokens has told all; a reader that has stalled has left behind what nobody has counted."""
    is_told = call.body.get("stream") is True and call.body.get("stream_interval") in (None, 1)
    return 0.0 if is_told and isinstance(end, asyncio.CancelledError) else cost.left()


def _more(cost: CallCost, item: Head | Failure | str) -> float:
    """What an item of the answer tells of its cost. Of what the engine refuses it computes nothing."""
    if isinstance(item, str):
        return cost.piece(item)
    if is_refused(item):
        cost.spared()
    return 0.0


def is_refused(item: Head | Failure | str) -> bool:
    """Whether the replica says with it that it answers nothing, and has computed nothing."""
    return isinstance(item, Failure) or (
        isinstance(item, Head) and HTTPStatus.BAD_REQUEST <= item.status < HTTPStatus.INTERNAL_SERVER_ERROR
    )
