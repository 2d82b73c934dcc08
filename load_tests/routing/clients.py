"""Clients that ask, wait for the whole answer, and go on to the next question."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from load_tests.corpus.families.building import Schema
from load_tests.errors import BenchFailed
from load_tests.routing.traffic import Body

PATIENCE_S = 180.0
BUSY, RETRIES = 503, 2
"""Who is told to come again does, as often as OpenAI's client does."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`status` is HTTP's, 0 where there was no answer; `seconds` from the first try on, `retries` after it; `code` says why
    there was none."""

    seconds: float
    status: int
    retries: int = 0
    code: str = ""


async def ask_all(url: str, bodies: Sequence[Body], clients: int) -> list[Asked]:
    """So many clients at a time take one body after another, each over a connection of its own."""
    left, context = iter(bodies), ssl.create_default_context()
    answered = await asyncio.gather(*(_client(url, left, context) for _ in range(clients)))
    return [one for answers in answered for one in answers]


async def compile_all(url: str, schemas: Sequence[Schema]) -> None:
    """Give each schema a name, one after the other: then they are compiled, in Redis, and no engine has heard of them.

    Raises:
        BenchFailed: a schema gets no name.
    """
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, trust_env=False) as http:
        for number, schema in enumerate(schemas):
            named = {"id": f"schema-{number}", "structured_outputs": {"json": schema}}
            asked = await ask(http, named, "/v1/grammars")
            if not httpx.codes.is_success(asked.status):
                raise BenchFailed(f"schema {number} gets no name: {asked.status} {asked.code}")


async def _client(url: str, left: Iterator[Body], context: ssl.SSLContext) -> list[Asked]:
    # A pool of all connections looks through all of them for each request, which took a processor of the two that the engines had.
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, trust_env=False, verify=context) as http:
        return [await ask(http, body) for body in left]


async def ask(http: httpx.AsyncClient, body: Mapping[str, Any], path: str = "/v1/chat/completions") -> Asked:
    """One request and, where the service says to come again, its retries."""
    started = time.perf_counter()
    for retries in range(RETRIES + 1):
        status, again_s, code = await _once(http, body, path)
        if status != BUSY or retries == RETRIES:
            break
        await asyncio.sleep(again_s)
    return Asked(time.perf_counter() - started, status, retries, code)


async def _once(http: httpx.AsyncClient, body: Mapping[str, Any], path: str) -> tuple[int, float, str]:
    """The status, after how many seconds to come again, and the code of an error."""
    try:
        answer = await http.post(path, json=body)
    except httpx.HTTPError as error:
        return 0, 0.0, type(error).__name__
    return answer.status_code, float(answer.headers.get("retry-after", 1)), "" if answer.is_success else _code(answer)


def _code(answer: httpx.Response) -> str:
    """That of an error of the service's own; none where something else has answered."""
    try:
        return str(answer.json()["error"]["code"])
    except (ValueError, LookupError, TypeError):
        return ""
