"""Background responses: computed while no connection is open; their clients retrieve them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from contextvars import Context
from functools import partial
from http import HTTPStatus

from deployments.api.http.leaving import CLIENT_CLOSED_REQUEST, before
from deployments.api.translation.exchange import Items
from deployments.api.translation.response_store import ResponseKey
from deployments.api.translation.responses_answer import IN_PROGRESS
from deployments.api.translation.responses_api import RENEW_S, BackgroundExchange, ResponsesApi
from deployments.errors import ApiError, translated, unavailable
from grammar_service.errors import CacheUnavailable, MaskcastError

logger = logging.getLogger(__name__)
FINISH_S = 5
"""Seconds in which a closing ingress stores the ends of its responses. Ray Serve ends the process five seconds later."""


class BackgroundResponses:
    """The background responses of one ingress. Each ends with its answer or an error, or when a client cancels or deletes it."""

    def __init__(self, api: ResponsesApi, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._api = api
        self._pause = pause
        self._tasks: set[asyncio.Task[int]] = set()
        self._in_progress: dict[ResponseKey, asyncio.Task[int]] = {}
        self._renewal: asyncio.Task[None] | None = None
        self._is_closing = False

    def start(self, exchange: BackgroundExchange, items: Items, until: float, ended: Callable[[int], None]) -> None:
        """Answers a request that is stored as in progress, `until` a time of the event loop's clock. `ended` hears the HTTP status that the
        answer would have."""
        task = asyncio.create_task(self._run(exchange, items, until))
        self._tasks.add(task)
        self._in_progress[exchange.key] = task
        task.add_done_callback(partial(self._on_done, exchange.key, ended))
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew_always(), context=Context())  # no request's trace

    async def close(self, within_s: float) -> None:
        """Returns when all have ended. Those that have not `within_s` fail."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        self._is_closing = True
        tasks = [*self._tasks, *([self._renewal] if self._renewal else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, exchange: BackgroundExchange, items: Items, until: float) -> int:
        try:
            status = await self._answer(exchange, items, until)
            self._in_progress.pop(exchange.key, None)  # what is being stored is given up by nobody
            await exchange.finish()
            return status
        except asyncio.CancelledError:
            if self._is_closing:  # otherwise who has cancelled it has stored that
                await self._finish_now(exchange)
            raise

    async def _answer(self, exchange: BackgroundExchange, items: Items, until: float) -> int:
        """The response has its end after this. Returns the HTTP status."""
        try:
            async with before(until), aclosing(exchange.answer(items)) as answered:
                async for _ in answered:
                    pass
            return HTTPStatus.OK
        except MaskcastError as error:
            failed = translated(error)
        except Exception:  # a fault of ours: the client must hear of it, since nobody else waits
            logger.exception("a response in the background")
            failed = ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error.", code="internal_error", kind="server_error")
        exchange.failed(failed)
        return failed.status

    async def _finish_now(self, exchange: BackgroundExchange) -> None:
        """Stores its end while the process still may; it may have its answer already."""
        if exchange.response["status"] == IN_PROGRESS:
            exchange.failed(unavailable("The process that answers it is ending; ask again.", "response_lost"))
        try:
            async with asyncio.timeout(FINISH_S):
                await exchange.finish()
        except TimeoutError:
            logger.warning("a response in the background is lost: its end could not be stored")

    def _on_done(self, key: ResponseKey, ended: Callable[[int], None], task: asyncio.Task[int]) -> None:
        self._tasks.discard(task)
        self._in_progress.pop(key, None)
        if task.cancelled():
            ended(CLIENT_CLOSED_REQUEST)
        elif (error := task.exception()) is not None:
            logger.error("a response in the background is lost", exc_info=error)
            ended(HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            ended(task.result())

    async def _renew_always(self) -> None:
        while True:
            await self._pause(RENEW_S)
            try:
                await self._renew_leases()
            except CacheUnavailable as error:
                logger.warning("responses in the background are not renewed: %s", error)
            except Exception:  # a renewal that ends would end all responses after it
                logger.exception("responses in the background are not renewed")

    async def _renew_leases(self) -> None:
        if not self._in_progress:
            return
        for key in await self._api.renew([*self._in_progress]):
            if (task := self._in_progress.get(key)) is not None:
                task.cancel()
                await asyncio.sleep(0)  # otherwise all would end in one iteration of the event loop
