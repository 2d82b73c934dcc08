"""The typed client for asyncio.

async with AsyncStructuredClient("http://127.0.0.1:8000") as client:
    async for person in client.stream_partial(Person, "Extract name, age as JSON.\\n\\nMeet Ada Young. Age: 36."):
        print(person.name, person.age)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from types import TracebackType
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from deployments.client.client import Generation, Prompt, request_body
from deployments.client.partial import GrowingAnswer, text_of, validated
from deployments.client.transport import MAX_RETRIES, PATHS, answer_of, authorization, event_of, raise_for, retry_after_s, retry_wait_s

Parsed = TypeVar("Parsed", bound=BaseModel)


class AsyncStructuredClient:
    """Over HTTP, with the calls, arguments and errors of `StructuredClient`. Close it in the end, or use it as a context."""

    def __init__(self, url: str, api_key: str | None = None, timeout_s: float = 600, max_retries: int = MAX_RETRIES) -> None:
        self._client = httpx.AsyncClient(base_url=url, headers=authorization(api_key), timeout=timeout_s)
        self._max_retries = max_retries

    async def __aenter__(self) -> AsyncStructuredClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.aclose()

    async def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """As `StructuredClient.generate`."""
        async with self._sent(request_body(prompt, options)) as response:
            await response.aread()
            return Generation.of(answer_of(response))

    async def parse(self, model: type[Parsed], prompt: Prompt, **options: Any) -> Parsed:
        """As `StructuredClient.parse`."""
        generation = await self.generate(prompt, json=model.model_json_schema(), **options)
        return validated(model, generation.text, generation.finish_reason)

    async def stream(self, prompt: Prompt, **options: Any) -> AsyncIterator[str]:
        """As `StructuredClient.stream`."""
        async for event in self._events(request_body(prompt, options)):
            if text := text_of(event):
                yield text

    async def stream_partial(self, model: type[Parsed], prompt: Prompt, **options: Any) -> AsyncIterator[Parsed]:
        """As `StructuredClient.stream_partial`."""
        answer = GrowingAnswer(model)
        async for event in self._events(request_body(prompt, {**options, "json": model.model_json_schema()})):
            if (instance := answer.add(event)) is not None:
                yield instance
        yield answer.whole()

    async def _events(self, body: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async with self._sent({**body, "stream": True}) as response:
            if response.is_error:
                await response.aread()
            raise_for(response)
            async for line in response.aiter_lines():
                if (event := event_of(line)) is not None:
                    yield event

    @asynccontextmanager
    async def _sent(self, body: Mapping[str, Any]) -> AsyncIterator[httpx.Response]:
        for attempt in count():
            async with self._client.stream("POST", PATHS["chat"], json=dict(body)) as response:
                wait_s = retry_wait_s(response.status_code, retry_after_s(response)) if attempt < self._max_retries else None
                if wait_s is None:
                    yield response
                    return
            await asyncio.sleep(wait_s)
