"""What /readyz tells: whether requests can be answered now, and what is missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ray import serve
from ray.serve.schema import DeploymentStatusOverview

from deployments.names import MODEL
from deployments.telemetry.kept import Kept, Late

KEPT_S = 1.0
"""Nobody needs a key to ask, and each time it is asked for Ray Serve's controller has to be."""
PATIENCE_S = 2.0
"""Whoever probes a service waits a few seconds."""


@dataclass(frozen=True)
class Health:
    """`running` counts the replicas that answer, by deployment; `redis` is None when none is configured. `late`: this is how it was when
    Ray last told, which it does no more."""

    running: dict[str, int]
    wanted: dict[str, int]
    redis: bool | None
    late: bool = False

    @property
    def ready(self) -> bool:
        return self.running.get(MODEL, 0) > 0

    @property
    def degraded(self) -> list[str]:
        """What is missing though requests can be answered."""
        missing = [name for name, count in self.wanted.items() if self.running.get(name, 0) < count]
        return [*missing, *(["redis"] if self.redis is False else []), *(["ray"] if self.late else [])]

    def body(self) -> dict[str, Any]:
        status = "unavailable" if not self.ready else "degraded" if self.degraded else "ready"
        redis = None if self.redis is None else "up" if self.redis else "down"
        return {"status": status, "degraded": self.degraded, "replicas": self.running, "wanted": self.wanted, "redis": redis}


class HealthReader:
    """`running` counts replicas, beside the event loop; `ping` asks Redis, None without one; `wanted` is how many replicas each deployment
    should have. `clock` in seconds."""

    def __init__(
        self,
        running: Callable[[], dict[str, int]],
        wanted: dict[str, int],
        ping: Callable[[], Awaitable[bool]] | None,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._running = running
        self._wanted = wanted
        self._ping = ping
        self._health = Kept(self._read, KEPT_S, clock, patience_s)

    async def read(self) -> Health:
        """As it was a moment ago; where Ray's head does not answer, as it was before that. Replicas answer without a head."""
        try:
            return await self._health.get()
        except Late:
            return replace(self._health.last or Health({}, self._wanted, None), late=True)

    async def _read(self) -> Health:
        running, redis = await asyncio.gather(asyncio.to_thread(self._running), self._redis())
        return Health(running, self._wanted, redis)

    async def _redis(self) -> bool | None:
        return None if self._ping is None else await self._ping()


def running_replicas(application: str, deployments: Iterable[str]) -> dict[str, int]:
    """As Ray Serve's controller says."""
    found = serve.status().applications.get(application)
    told = found.deployments if found else {}
    return {name: _count(told.get(name)) for name in deployments}


def _count(deployment: DeploymentStatusOverview | None) -> int:
    states = deployment.replica_states if deployment else {}
    return sum(count for state, count in states.items() if state == "RUNNING")
