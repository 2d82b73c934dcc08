"""An answer that comes too late is an error of ours, and nothing else is."""

from __future__ import annotations

import asyncio

import pytest

from deployments.api.http.leaving import before
from deployments.errors import ApiError


async def test_what_is_not_done_in_time_is_given_up() -> None:
    ended = asyncio.Event()

    async def take_too_long() -> None:
        async with before(asyncio.get_running_loop().time()):
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    with pytest.raises(ApiError) as caught:
        await take_too_long()
    assert (caught.value.status, caught.value.code) == (504, "request_timeout")
    assert ended.is_set()


async def test_what_is_done_in_time_is_done() -> None:
    async with before(asyncio.get_running_loop().time() + 60):
        await asyncio.sleep(0)


async def test_a_timeout_inside_is_none_of_the_request() -> None:
    with pytest.raises(TimeoutError):
        async with before(asyncio.get_running_loop().time() + 60):
            raise TimeoutError
