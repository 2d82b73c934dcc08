"""What can be the matter with a Redis server, done to a real one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import redis

from deployments.local.redis_server import HOST, RedisServer

RUBBISH = b"\x00rubbish\xff" * 40
SLOW_S, BETWEEN_S = 2.0, 0.05

BeforeEach = Callable[[], Awaitable[None]]
Trouble = Callable[[RedisServer], AbstractAsyncContextManager[BeforeEach]]
"""The server is in trouble inside the block; what the block is given is done before each request."""


def client_of(server: RedisServer) -> redis.Redis:
    return redis.Redis(HOST, server.port, password=server.password.get_secret_value(), socket_timeout=5)


async def nothing() -> None:
    """Before each request, where the trouble goes on by itself."""


@asynccontextmanager
async def stopped(server: RedisServer) -> AsyncIterator[BeforeEach]:
    server.stop()
    try:
        yield nothing
    finally:
        server.start()


@asynccontextmanager
async def hanging(server: RedisServer) -> AsyncIterator[BeforeEach]:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield nothing
    finally:
        os.kill(server.pid, signal.SIGCONT)


@asynccontextmanager
async def slow(server: RedisServer) -> AsyncIterator[BeforeEach]:
    """Answers come after up to two seconds."""
    holding = asyncio.create_task(_hold_up(server.pid))
    try:
        yield nothing
    finally:
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        os.kill(server.pid, signal.SIGCONT)


@asynccontextmanager
async def full(server: RedisServer) -> AsyncIterator[BeforeEach]:
    with client_of(server) as client:
        before = client.config_get("maxmemory*")
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        try:
            yield nothing
        finally:
            for name in ("maxmemory", "maxmemory-policy"):
                client.config_set(name, before[name])


@asynccontextmanager
async def restarting(server: RedisServer) -> AsyncIterator[BeforeEach]:
    """It has forgotten everything, and every connection to it is dead."""

    async def restart() -> None:
        server.stop()
        server.start()

    yield restart


@asynccontextmanager
async def lying(server: RedisServer) -> AsyncIterator[BeforeEach]:
    """All that it holds is overwritten with bytes that nobody has written."""

    async def overwrite() -> None:
        with client_of(server) as client:
            for name in client.scan_iter():
                client.set(name, RUBBISH)

    yield overwrite


TROUBLES: dict[str, Trouble] = {
    "stopped": stopped,
    "hanging": hanging,
    "answering after 2 s": slow,
    "full": full,
    "restarted before each request": restarting,
    "full of rubbish": lying,
}


async def _hold_up(pid: int) -> None:
    while True:
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(SLOW_S)
        os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(BETWEEN_S)
