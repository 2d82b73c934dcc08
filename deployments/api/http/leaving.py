"""Clients that leave before they have their answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from grammar_service.errors import MaskcastError


class ClientLeft(MaskcastError):
    """Nobody waits for the answer any more."""


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """The body of the request has been read.

    Raises:
        ClientLeft: in place of whatever was awaited inside.
    """
    task = asyncio.current_task()
    assert task is not None
    watcher = asyncio.create_task(_cancel_when_left(request, task))
    try:
        yield
    except asyncio.CancelledError:
        if watcher.done() and task.uncancel() == 0:
            raise ClientLeft("the client has left") from None
        raise  # somebody else has cancelled it
    finally:
        watcher.cancel()


async def _cancel_when_left(request: Request, task: asyncio.Task[None]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    task.cancel()
