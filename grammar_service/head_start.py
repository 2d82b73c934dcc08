"""Looking for something in a cache, and making it where the cache does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HEAD_START_S = 0.008
"""Many times what a cache in order takes, for all but the largest values. Along the way of one request, a name may be waited for as long
as a call of Redis may take, and each of the compile replica and the model replica may wait as long as this: 36 ms in all."""


async def found_or_made(
    find: Callable[[], asyncio.Task[T | None]], make: Callable[[], asyncio.Task[T]], head_start_s: float = HEAD_START_S
) -> T:
    """What is found, or made where there is nothing (None). After the head start it is made as well, and whichever comes first is taken;
    without one, making comes before asking.

    Both go on when they are not waited for any longer, so that a cache that does not answer is found out. Raises what either raises;
    what is found goes before a failure to make it.
    """
    if head_start_s:
        finding = find()
        await asyncio.wait((finding,), timeout=head_start_s)
        if finding.done():
            found = finding.result()
            return found if found is not None else await make()
        making = make()
    else:
        making, finding = make(), find()
    await asyncio.wait((finding, making), return_when=asyncio.FIRST_COMPLETED)
    if making.done() and not making.cancelled() and making.exception() is None:
        return making.result()
    found = await finding
    return found if found is not None else await making
