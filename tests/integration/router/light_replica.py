"""Replicas without an engine, and the gate by which a test holds them up."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from typing import Any

import ray
from ray import serve
from ray.serve.handle import DeploymentHandle

from router.dispatcher import Dispatcher
from router.grouping import Release
from router.request_router import SchemaRouter

OTHERS = 99


@dataclass(frozen=True, slots=True)
class LightCall:
    """`held`: it is answered when the gate opens."""

    name: str = ""
    held: bool = False
    prompt_tokens: int = 0
    forced_tokens: int = 0
    prefix: str = ""
    avoid: str = ""
    sequences: int = 1
    tenant: str = ""
    weight: float = 1.0
    progress: object = None


class Gate:
    """An actor; `starts` replicas may start until `admit` lets in more. Knows which calls have arrived, in their order."""

    def __init__(self, starts: int) -> None:
        self._starts = asyncio.Semaphore(starts)
        self._open = asyncio.Event()
        self._arrival = asyncio.Condition()
        self._arrived: list[str] = []

    async def start(self) -> None:
        await self._starts.acquire()

    async def admit(self) -> None:
        self._starts.release()

    async def arrive(self, name: str) -> None:
        async with self._arrival:
            self._arrived.append(name)
            self._arrival.notify_all()

    async def arrived(self, count: int) -> list[str]:
        """Waits until so many have."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self._arrived) >= count)
            return list(self._arrived)

    async def pass_through(self) -> None:
        await self._open.wait()

    async def open(self) -> None:
        self._open.set()

    async def close(self) -> None:
        """For further calls; those that have arrived are forgotten."""
        self._open.clear()
        self._arrived.clear()


class Light:
    """Answers with its own id."""

    async def __init__(self, gate: Any) -> None:  # type: ignore[misc]  # Ray Serve awaits it
        self._gate = gate
        self._held = 0
        self._name = serve.get_replica_context().replica_id.unique_id
        await gate.start.remote()

    async def answer(self, call: LightCall) -> str:
        if call.held:
            self._held += 1
            await self._gate.arrive.remote(call.name)
            await self._gate.pass_through.remote()
            self._held -= 1
        return self._name

    async def process(self) -> tuple[str, int]:
        return self._name, os.getpid()

    async def end(self) -> None:
        os._exit(1)


class LightWithStats(Light):
    """While it holds a call, it has many of other routers as well."""

    def record_routing_stats(self) -> dict[str, Any]:
        return {"taken_at": time.time(), "requests": self._held * (OTHERS + 1), "prefill_tokens": 0}


class Caller:
    """Makes several calls in the course of one request: they share its id."""

    def __init__(self, models: DeploymentHandle[Any]) -> None:
        self._models = models

    async def answers(self, keys: list[str]) -> list[str]:
        answers: list[str] = await asyncio.gather(*(self._models.options(session_id=key).answer.remote(LightCall()) for key in keys))
        return answers


class RecordingDispatcher(Dispatcher):
    """Remembers how many requests each release had."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.released: list[int] = []

    def tick(self, now: float) -> list[Release]:
        releases = super().tick(now)
        self.released += [len(release.requests) for release in releases]
        return releases


class RecordingRouter(SchemaRouter):
    dispatcher_class = RecordingDispatcher


class BrokenDispatcher(Dispatcher):
    """Fails at whatever it is asked for."""

    def __init__(self, *args: Any) -> None:
        pass

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"{name} is broken")


class BrokenRouter(SchemaRouter):
    dispatcher_class = BrokenDispatcher


def new_gate(starts: int = 1000) -> Any:
    return ray.remote(Gate).options(num_cpus=0, max_concurrency=1000).remote(starts)
