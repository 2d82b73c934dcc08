"""A thread that takes in the answers to this process's calls."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from queue import SimpleQueue
from threading import Thread

from deployments.answers.calls import AnsweredCalls, Call
from deployments.answers.receiver import AnswerReceiver
from deployments.errors import AnswerLost

_Items = SimpleQueue[str | Exception | None]


class AnswerThread:
    """With an event loop of its own, for callers that block. What an ingress has for all of them at one time comes with one read. Ends with
    the process. `receiver` is not started yet."""

    def __init__(self, receiver: AnswerReceiver) -> None:
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, name="maskcast-answers", daemon=True).start()
        asyncio.run_coroutine_threadsafe(receiver.start(), self._loop).result()
        self._calls = AnsweredCalls(receiver)

    def pieces(self, call: Call) -> Generator[str, None, None]:
        """An answer, for one thread. Closed early, it ends the call. An answer that is not read is kept in memory: it has an end."""
        items: _Items = SimpleQueue()
        reading = asyncio.run_coroutine_threadsafe(self._read(call, items), self._loop)
        try:
            while (item := items.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            reading.cancel()

    async def _read(self, call: Call, items: _Items) -> None:
        try:
            with self._calls.answer(call) as answer:
                async for item in answer:
                    items.put(str(item))
        except asyncio.CancelledError:
            items.put(AnswerLost("the call was cancelled"))  # not by the thread that reads, if there is one still
            raise
        except Exception as error:  # noqa: BLE001  # the thread that reads raises it
            items.put(error)
        else:
            items.put(None)
