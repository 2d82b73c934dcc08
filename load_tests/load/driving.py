"""Sends what arrives, when it arrives, whatever has become of what came before."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from load_tests.front_door.clients.connection import Connection, Reply, request
from load_tests.front_door.clients.events import DONE, Part, events
from load_tests.load.arrivals import arrivals
from load_tests.load.scenarios import Scenario

PATIENCE_S = 120.0
SEED = 41
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Asked:
    """Seconds: `due_s` after the scenario's start, `late_s` after that it was sent, `first_s` after that came the first of the answer, if
    anything of one came, and `whole_s` its end. `status` is HTTP's; 0: there was no answer, or not all of one. `failed`: the stream ended
    with an error event."""

    tenant: str
    due_s: float
    late_s: float
    status: int
    first_s: float | None
    whole_s: float
    tokens: int = 0
    failed: bool = False

    @property
    def is_answered(self) -> bool:
        return self.status == 200 and not self.failed

    @property
    def token_s(self) -> float | None:
        """Between two tokens of the answer, on average."""
        return (self.whole_s - self.first_s) / (self.tokens - 1) if self.first_s is not None and self.tokens > 1 else None


@dataclass(frozen=True, slots=True)
class Port:
    """Where is asked, and with which keys, by their tenants."""

    host: str
    port: int
    keys: Mapping[str, str]


async def drive(port: Port, scenario: Scenario, usual: float, seconds: float, told: Callable[[], object]) -> list[Asked]:
    """In the order of their ends; `told` hears of each."""
    random, idle, asked = Random(SEED), list[Connection](), list[Asked]()
    due = arrivals(scenario.rate, scenario.peak, usual, seconds, random)
    bodies = [json.dumps({**scenario.body(number, random), **STREAMED}).encode("ascii") for number in range(len(due))]
    tenants = random.choices(list(port.keys), k=len(due))
    started = time.perf_counter()

    async def one(tenant: str, body: bytes, due_s: float) -> None:
        connection = idle.pop() if idle else Connection(port.host, port.port)
        asked.append(await _asked(connection, request(port.host, port.port, body, port.keys[tenant]), tenant, due_s, started))
        if asked[-1].status:
            idle.append(connection)
        else:
            connection.close()
        told()

    async with asyncio.TaskGroup() as group:
        for tenant, body, due_s in zip(tenants, bodies, due, strict=True):
            await asyncio.sleep(started + due_s - time.perf_counter())
            group.create_task(one(tenant, body, due_s))
    for connection in idle:
        connection.close()
    return asked


async def _asked(connection: Connection, content: bytes, tenant: str, due_s: float, started: float) -> Asked:
    sent, reply = time.perf_counter(), Reply()
    with suppress(OSError):  # nobody is there, or takes too long
        async with asyncio.timeout(PATIENCE_S):
            await connection.ask(content, reply)
    return read(tenant, due_s, sent - started - due_s, sent, reply)


def read(tenant: str, due_s: float, late_s: float, sent: float, reply: Reply) -> Asked:
    """What a reply comes to; times of its parts are of the clock of `sent`."""
    whole_s = reply.parts[-1].at_s - sent if reply.parts else 0.0
    if reply.status != 200:
        return Asked(tenant, due_s, late_s, reply.status, None, whole_s)
    told = list(_told(reply.parts))
    first_s = next((at_s - sent for at_s, event in told if _says(event)), None)
    tokens = next((event["usage"]["completion_tokens"] for _, event in reversed(told) if event.get("usage")), 0)
    is_whole = bool(told) and told[-1][1] == {}
    failed = any("error" in event for _, event in told)
    return Asked(tenant, due_s, late_s, 200 if is_whole or failed else 0, first_s, whole_s, tokens, failed)


def _told(parts: Sequence[Part]) -> list[tuple[float, dict[str, Any]]]:
    """Events, and an empty one where the stream says that it has ended."""
    return [(at_s, {} if data == DONE else json.loads(data)) for at_s, data in events(parts)]


def _says(event: dict[str, Any]) -> bool:
    return any(choice["delta"].get(field) for choice in event.get("choices", ()) for field in ("content", "tool_calls", "reasoning"))
