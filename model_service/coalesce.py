"""Joins what has piled up while the reader was busy, so that a slow hop costs per message and not per token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator


async def coalesced(pieces: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """The same text in fewer pieces; a piece that finds the reader waiting passes at once."""
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    task = asyncio.create_task(_pump(pieces, queue))
    try:
        ended = False
        while not ended:
            batch = [await queue.get()]
            while not queue.empty():
                batch.append(queue.get_nowait())
            ended = batch[-1] is None
            if text := "".join(piece for piece in batch if piece is not None):
                yield text
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _pump(pieces: AsyncIterator[str], queue: asyncio.Queue[str | None]) -> None:
    try:
        async for piece in pieces:
            queue.put_nowait(piece)
    finally:
        queue.put_nowait(None)
