"""Model replicas without an engine, and what becomes of them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from typing import Any

from ray import get_runtime_context, serve

from deployments.answers.frames import ReplyTo
from deployments.answers.sender import AnswerSender
from model_service.messages import Call
from model_service.replies import ENGINE_DEAD, Failure, Head

ANSWERS, ENGINE_ENDS, ENDS_AT_ONCE, ENDS_LATER = "answers", "the engine ends", "ends at once", "ends later"
NO_ENGINE_YET = "has no engine yet"


class Fates:
    """An actor: the first replica that asks after a strike meets it, and goes on to."""

    def __init__(self) -> None:
        self._next = ANSWERS
        self._struck: dict[str, str] = {}
        self._fulfilled = asyncio.Event()

    async def forget(self) -> None:
        """All answer from now on, and nobody has been struck."""
        self._next = ANSWERS
        self._struck.clear()
        self._fulfilled.clear()

    async def strike(self, fate: str) -> None:
        self._next = fate

    async def of(self, replica: str) -> str:
        if replica not in self._struck and self._next != ANSWERS:
            self._struck[replica], self._next = self._next, ANSWERS
        return self._struck.get(replica, ANSWERS)

    async def fulfil(self) -> None:
        """Ends those that end later."""
        self._fulfilled.set()

    async def fulfilled(self) -> None:
        await self._fulfilled.wait()

    async def struck(self) -> list[str]:
        return list(self._struck)


class LightModel:
    """Answers with its id and what it was told of the call's length."""

    def __init__(self, fates: Any) -> None:
        self._fates = fates
        self._name = serve.get_replica_context().replica_id.unique_id
        self._answers = AnswerSender(get_runtime_context().get_node_id())

    async def respond(self, call: Call, reply_to: ReplyTo) -> None:
        await self._answers.send(reply_to, self._items(call))

    async def _items(self, call: Call) -> AsyncGenerator[Head | Failure | str, None]:
        fate = await self._fates.of.remote(self._name)
        if fate == ENGINE_ENDS:
            yield Failure(ENGINE_DEAD, "the engine process has ended", replica=self._name)
            return
        if fate == NO_ENGINE_YET:
            yield Failure(ENGINE_DEAD, "another engine is on its way", replica=self._name, computing=False)
            return
        if fate == ENDS_AT_ONCE:
            os._exit(1)
        yield Head(200, stream=True)
        key = call.constraint.key if call.constraint else ""
        told = {"replica": self._name, "key": key, "prompt": call.prompt_tokens, "forced": call.forced_tokens, "sequences": call.sequences}
        told |= {"salt": call.body.get("cache_salt"), "prefix": call.prefix, "tenant": call.tenant, "progress": call.progress}
        told["usage asked for"] = bool(call.body.get("stream_options"))
        usage = {"completion_tokens_details": {"forced_tokens": 40}, **json.loads(call.body.get("session_id") or "{}")}
        yield json.dumps({**told, "usage": usage}, separators=(",", ":"))
        if fate == ENDS_LATER:
            await self._fates.fulfilled.remote()
            os._exit(1)
