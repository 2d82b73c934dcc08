"""Requests of two tenants that use most of what the dashboard shows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

NEW_EVERY = 6
"""Every so many requests bring a schema that nobody has seen."""
LONG = "a" * 20_000
"""What is longer than what the ingress checks itself: the compile pool refuses it."""
PLACES = ("Lyon", "Porto", "Ghent", "Turku", "Graz", "Cork")


@dataclass(frozen=True, slots=True)
class Phase:
    """So many requests of each tenant are under way at a time, for so long."""

    seconds: float
    clients: int


async def drive(url: str, keys: Mapping[str, str], phases: Sequence[Phase]) -> None:
    """`keys` by the names of their tenants. Whatever the service answers is right: its metrics tell of it."""
    chance = random.Random(7)
    for phase in phases:
        until = asyncio.get_running_loop().time() + phase.seconds
        async with asyncio.TaskGroup() as group:
            for tenant, key in keys.items():
                for _ in range(phase.clients):
                    group.create_task(_client(url, key, tenant, until, chance))


async def _client(url: str, key: str, tenant: str, until: float, chance: random.Random) -> None:
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120) as http:
        while asyncio.get_running_loop().time() < until:
            answer = await http.post("/v1/chat/completions", json=_body(tenant, chance))
            if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
                await asyncio.sleep(float(answer.headers["retry-after"]))


def _body(tenant: str, chance: random.Random) -> dict[str, Any]:
    place, number = chance.choice(PLACES), chance.randrange(10_000)
    question = f"Extract city, visitors as JSON.\n\nOf {tenant}: {place} had {number} visitors."
    kind = chance.choices(("record", "stream", "choice", "plain", "refused", "checked"), (5, 4, 2, 2, 1, 1))[0]
    kinds: dict[str, dict[str, Any]] = {
        "record": {"structured_outputs": {"json": _schema(number)}},
        "stream": {"structured_outputs": {"json": _schema(number)}, "stream": True},
        "choice": {"structured_outputs": {"choice": list(PLACES)}},
        "plain": {"max_tokens": 24},
        "refused": {"structured_outputs": {"regex": "(" + LONG}},
        "checked": {"structured_outputs": {"json": _doubled()}, "unenforceable": "check", "temperature": 1},
    }
    return {"messages": [{"role": "user", "content": question}], "max_tokens": 96, "temperature": 0, **kinds[kind]}


def _schema(number: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "city": {"type": "string", "maxLength": 20},
        "visitors": {"type": "integer"},
        "country": {"enum": ["FR", "PT", "BE"]},
    }
    if number % NEW_EVERY == 0:
        fields[f"visitors_of_{number}"] = {"type": "boolean"}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _doubled() -> dict[str, Any]:
    """No automaton knows the pattern, and one answer in two does not hold it."""
    pair = {"type": "string", "enum": ["aa", "ab", "bb", "ba"], "pattern": "^(.)\\1$"}
    return {"type": "object", "properties": {"pair": pair}, "required": ["pair"], "additionalProperties": False}
