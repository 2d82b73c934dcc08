"""Responses that are made while nobody waits: their clients read them again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from http import HTTPStatus

from deployments.api.http.leaving import CLIENT_CLOSED_REQUEST, before
from deployments.api.translation.exchange import Items
from deployments.api.translation.response_store import Place
from deployments.api.translation.responses_api import RENEW_S, BackgroundExchange, ResponsesApi
from deployments.errors import ApiError, translated, unavailable
from grammar_service.errors import CacheUnavailable, MaskcastError

logger = logging.getLogger(__name__)
LAST_WORD_S = 5
"""For the responses that a closing ingress gives up to say so."""


class BackgroundResponses:
    """Those of one ingress. Each ends with its answer, with an error, or because somebody has cancelled or deleted it, at any ingress."""

    def __init__(self, api: ResponsesApi, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._api = api
        self._pause = pause
        self._running: dict[Place, asyncio.Task[int]] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._is_closing = False

    def start(self, exchange: BackgroundExchange, items: Items, until: float, ended: Callable[[int], None]) -> None:
        """Answers a request that is stored as in progress, `until` a time of the event loop's clock. `ended` hears the HTTP status that the
        answer would have."""
        task = self._running[exchange.place] = asyncio.create_task(self._run(exchange, items, until))
        task.add_done_callback(partial(self._leave, exchange.place, ended))
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())

    async def close(self, within_s: float) -> None:
        """Returns when all have ended. Those that have not `within_s` fail."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=within_s)
        self._is_closing = True
        tasks = [*self._running.values(), *([self._renewing] if self._renewing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, exchange: BackgroundExchange, items: Items, until: float) -> int:
        try:
            status = await self._answer(exchange, items, until)
            await exchange.finish()
            return status
        except asyncio.CancelledError:
            if self._is_closing:  # otherwise who has cancelled it has stored that
                await self._fail(exchange, unavailable("The process that answers it is ending; ask again.", "response_lost"))
            raise

    def _leave(self, place: Place, ended: Callable[[int], None], task: asyncio.Task[int]) -> None:
        del self._running[place]
        if task.cancelled():
            ended(CLIENT_CLOSED_REQUEST)
        elif (error := task.exception()) is not None:
            logger.error("a response in the background is lost", exc_info=error)
            ended(HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            ended(task.result())

    async def _answer(self, exchange: BackgroundExchange, items: Items, until: float) -> int:
        """The response has its end after this. Returns the HTTP status."""
        try:
            async with before(until), aclosing(exchange.answer(items)) as answered:
                async for _ in answered:
                    pass
            return HTTPStatus.OK
        except MaskcastError as error:
            exchange.failed(failed := translated(error))
            return failed.status

    async def _fail(self, exchange: BackgroundExchange, error: ApiError) -> None:
        exchange.failed(error)
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await exchange.finish()
        except TimeoutError:
            logger.warning("a response in the background is lost: its end could not be stored")

    async def _renew(self) -> None:
        while True:
            await self._pause(RENEW_S)
            try:
                for place in await self._api.given_up([*self._running]) if self._running else ():
                    if (task := self._running.get(place)) is not None:
                        task.cancel()
            except CacheUnavailable as error:
                logger.warning("responses in the background are not renewed: %s", error)
