"""A hostile client: sends one constraint after another that was made to hurt."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from itertools import cycle

import httpx

from grammar_service.spec import GrammarSpec
from tests.hostile_corpus import request_field

FINE = frozenset({200, 400, 413, 503})
"""A correct grammar, a refusal, too large a body, or a queue that is full of this client's own requests."""


@dataclass(frozen=True, slots=True)
class Struck:
    name: str
    status: int
    seconds: float

    @property
    def is_fine(self) -> bool:
        return self.status in FINE


async def attack(url: str, key: str, corpus: dict[str, GrammarSpec], until: asyncio.Event, first: int = 0) -> list[Struck]:
    """Goes through the corpus again and again, from its entry `first` on, until told to stop."""
    struck = []
    entries = list(corpus.items())
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120) as http:
        for name, spec in cycle(entries[first:] + entries[:first]):
            if until.is_set():
                break
            struck.append(await _strike(http, name, spec))
    return struck


async def _strike(http: httpx.AsyncClient, name: str, spec: GrammarSpec) -> Struck:
    body = {"messages": [{"role": "user", "content": "Go."}], "structured_outputs": request_field(spec), "max_tokens": 2}
    started = time.perf_counter()
    # Escaped as ASCII, so that lone surrogates get as far as the server.
    answer = await http.post("/v1/chat/completions", content=json.dumps(body).encode("ascii"), headers={"Content-Type": "application/json"})
    return Struck(name, answer.status_code, time.perf_counter() - started)
