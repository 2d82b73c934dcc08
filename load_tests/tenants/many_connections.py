"""Connections that nobody uses as they are meant."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

SPARE_FILES = 500
AT_A_TIME = 200
PATIENCE_S = 120.0
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def most_connections(wanted: int) -> int:
    """That many, or as many as this process may have open beside its other files. The service has the same limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES)


class Connections:
    """That are open; `number`: how many."""

    def __init__(self, loop: asyncio.AbstractEventLoop, host: str, port: int, number: int, content: bytes) -> None:
        self._loop = loop
        self._opened = asyncio.run_coroutine_threadsafe(_open(host, port, number, content), loop).result(PATIENCE_S)
        self.number = len(self._opened)

    def close(self) -> None:
        """All at once, if they are not closed yet."""
        opened, self._opened = self._opened, []
        asyncio.run_coroutine_threadsafe(_close(opened), self._loop).result(PATIENCE_S)


@contextmanager
def connections(host: str, port: int, number: int, content: bytes) -> Iterator[Connections]:
    """So many, on each of which `content` was sent. They are closed at the latest at the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = Connections(loop, host, port, number, content)
    try:
        yield opened
    finally:
        opened.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


async def _open(host: str, port: int, number: int, content: bytes) -> list[Opened]:
    found: list[Opened] = []
    while len(found) < number:
        some = min(AT_A_TIME, number - len(found))
        results = await asyncio.gather(*(asyncio.open_connection(host, port) for _ in range(some)), return_exceptions=True)
        came = [one for one in results if not isinstance(one, BaseException)]
        for _, writer in came:
            if content:
                writer.write(content)
        found += came
        if len(came) < some:
            break
    return found


async def _close(opened: Sequence[Opened]) -> None:
    for _, writer in opened:
        writer.transport.abort()
    for _, writer in opened:
        with suppress(OSError):
            await writer.wait_closed()
