"""Processes that are killed while requests are under way."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter

import httpx
import psutil

from tests.e2e.service import MODEL, Service

MESSAGES = [{"role": "user", "content": "Say something."}]


async def load(service: Service, requests: int, strike: asyncio.Event, after: int) -> Counter[int]:
    """Send requests, some at a time; `strike` is set when `after` of them are answered. Returns the statuses."""
    statuses: Counter[int] = Counter()
    gate = asyncio.Semaphore(8)

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        body = {"model": MODEL, "messages": MESSAGES, "max_tokens": 24, "seed": number, "guided_regex": f"[a-f]{{{number % 7 + 2}}}"}
        async with gate:
            response = await client.post(f"{service.url}/v1/chat/completions", json=body)
        statuses[response.status_code] += 1
        if response.status_code != 200:
            assert response.json()["error"]["code"], response.text
        if statuses.total() >= after:
            strike.set()

    async with httpx.AsyncClient(timeout=180, headers=service.headers) as client:
        await asyncio.gather(*(ask(client, number) for number in range(requests)))
    return statuses


async def strike_under_load(
    service: Service, victims: list[psutil.Process], requests: int = 40, sent: signal.Signals = signal.SIGKILL
) -> Counter[int]:
    strike = asyncio.Event()
    loading = asyncio.create_task(load(service, requests, strike, requests // 4))
    await strike.wait()
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(sent)
    return await loading
