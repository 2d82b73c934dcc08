"""Artifacts on a channel, as a replica offers them, from a thread of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Event, Thread
from uuid import uuid4

from model_service.artifact_channel import ArtifactServer, Payload


@contextmanager
def offered(payloads: Mapping[str, Payload]) -> Iterator[str]:
    """The channel's name; the payloads by their keys."""
    name = f"maskcast-offered-{uuid4().hex}"
    ready, leave = Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        server = ArtifactServer(name)
        await server.start()
        with ExitStack() as stack:
            for key, payload in payloads.items():
                stack.enter_context(server.offered(key, partial(_same, payload)))
            ready.set()
            await leave.wait()
        await server.close()

    thread = Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield name
    finally:
        loop.call_soon_threadsafe(leave.set)
        thread.join()
        loop.close()


def _same(payload: Payload) -> Payload:
    return payload
