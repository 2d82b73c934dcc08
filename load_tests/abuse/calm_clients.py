"""Well-behaved clients: each asks, reads the stream to its end, and asks again."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

import httpx

QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Extract name, age as JSON.\n\nMeet Ada Young. Age: 36.", {"name": {"type": "string"}, "age": {"type": "integer"}}),
    ("Extract order, total as JSON.\n\nOrder 1042 comes to 18.50 in all.", {"order": {"type": "string"}, "total": {"type": "number"}}),
    ("Extract city, country as JSON.\n\nShe lives in Lyon, France.", {"city": {"type": "string"}, "country": {"type": "string"}}),
    ("Extract open, level as JSON.\n\nTicket 7 is open, level 2.", {"open": {"type": "boolean"}, "level": {"type": "integer"}}),
)
NEW_EVERY = 5
"""Every so many requests a client brings a schema that nobody has seen."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Seconds until the first token, and whether the answer was a complete JSON object."""

    first_token_s: float
    complete: bool


async def run_clients(url: str, key: str, clients: int, requests: int, phase: str) -> list[Answered]:
    """All answers of `clients` clients with `requests` requests each; `phase` makes the new schemas new."""
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120) as http:
        answers = await asyncio.gather(*(_client(http, f"{phase}_{number}", requests) for number in range(clients)))
    return [answer for one in answers for answer in one]


async def _client(http: httpx.AsyncClient, name: str, requests: int) -> list[Answered]:
    return [await _ask(http, _body(name, number)) for number in range(requests)]


def _body(name: str, number: int) -> dict[str, Any]:
    question, properties = QUESTIONS[number % len(QUESTIONS)]
    if number % NEW_EVERY == NEW_EVERY - 1:
        properties = {**properties, f"note_{name}_{number}": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {
        "messages": [{"role": "user", "content": question}],
        "structured_outputs": {"json": schema},
        "max_tokens": 160,
        "temperature": 0,
        "stream": True,
    }


async def _ask(http: httpx.AsyncClient, body: dict[str, Any]) -> Answered:
    started = time.perf_counter()
    first, text = None, ""
    async with http.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if (piece := _content(line)) and first is None:
                first = time.perf_counter() - started
            text += piece
    return Answered(first if first is not None else time.perf_counter() - started, _is_object(text))


def _content(line: str) -> str:
    data = line.removeprefix("data: ")
    if data in (line, "[DONE]"):
        return ""
    choices = json.loads(data).get("choices") or [{}]
    return choices[0].get("delta", {}).get("content") or ""


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
