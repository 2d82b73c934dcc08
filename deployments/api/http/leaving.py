"""Clients that leave before they have their answer, and answers that come too late for anybody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.requests import Request

from deployments.errors import ApiError
from grammar_service.errors import MaskcastError

CLIENT_CLOSED_REQUEST = 499
"""Nobody sees it but the metrics."""


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


@asynccontextmanager
async def before(until: float) -> AsyncIterator[None]:
    """`until` is a time of the event loop's clock.

    Raises:
        ApiError: 504, in place of whatever was awaited inside.
    """
    try:
        async with asyncio.timeout_at(until) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        message = "The request was not answered in time, and has been given up."
        raise ApiError(HTTPStatus.GATEWAY_TIMEOUT, message, code="request_timeout", kind="server_error") from None


async def _cancel_when_left(request: Request, task: asyncio.Task[None]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    task.cancel()
