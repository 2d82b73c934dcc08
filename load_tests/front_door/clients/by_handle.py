"""Clients that ask by Ray handle, as a job of the cluster does: each in a thread of its own, with the client's own transport."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray
from ray import serve

from deployments.client.by_handle import HandleTransport
from deployments.client.transport import DONE, Transport
from deployments.errors import ApiError
from deployments.names import APPLICATION
from load_tests.front_door.clients.connection import Reply
from load_tests.front_door.clients.events import OK, Part


class Callers:
    """`clients` of them; this process joins the Ray that its environment names."""

    def __init__(self, clients: int, stream: bool) -> None:
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        self._transport = HandleTransport(serve.get_app_handle(APPLICATION))
        self._threads = ThreadPoolExecutor(clients)
        self._stream = stream

    def one(self) -> Caller:
        return Caller(self._transport, self._threads, self._stream)


class Caller:
    """One question at a time."""

    def __init__(self, transport: Transport, threads: ThreadPoolExecutor, stream: bool) -> None:
        self._transport = transport
        self._threads = threads
        self._stream = stream

    async def ask(self, request: bytes, reply: Reply) -> None:
        """`request` is the body. Returns when the answer has ended."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, json.loads(request), reply)

    def close(self) -> None:
        """Nothing is held."""

    def _ask(self, body: dict[str, Any], reply: Reply) -> None:
        try:
            came = [(time.perf_counter(), event) for event in self._events(body)]
        except ApiError as error:
            reply.status = error.status
            return
        ended_s = time.perf_counter()
        if self._stream:
            reply.parts = [Part(at_s, f"data: {json.dumps(event)}\n\n".encode()) for at_s, event in came]
            reply.parts.append(Part(ended_s, f"data: {DONE}\n\n".encode()))
        else:
            reply.parts = [Part(at_s, json.dumps(answer).encode()) for at_s, answer in came]
        reply.status = OK

    def _events(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self._stream:
            yield from self._transport.stream("chat", body)
        else:
            yield self._transport.generate("chat", body)
