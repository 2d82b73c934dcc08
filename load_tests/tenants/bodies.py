"""What the tenants of this benchmark send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grammar_service.spec import GrammarSpec
from tests.hostile_bodies import HOSTILE_BODIES
from tests.hostile_corpus import HOSTILE, request_field

WORD = "river stone lantern quiet morning "
MANY_GRAMMARS = 4


@dataclass(frozen=True, slots=True)
class Flood:
    """`clients` send the bodies round and round. `slow`: they read a little at a time. `hostile`: each body is to be answered soon, and
    need not be served."""

    name: str
    bodies: Sequence[bytes]
    clients: int
    slow: bool = False
    hostile: bool = False


def chat(words: int, max_tokens: int, **fields: Any) -> bytes:
    """A stream of so many tokens, whatever the model would say."""
    content = WORD * (words // 4) + "."
    body = {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": max_tokens,
        "min_tokens": max_tokens,
        "ignore_eos": True,
        "stream": True,
        **fields,
    }
    return json.dumps(body).encode("ascii")


def floods(seats: int, widest: int) -> list[Flood]:
    """By what a flood is made of, for an engine of so many seats, of which one request may have `widest`."""
    grammars = [_constrained(name, spec) for name, spec in list(HOSTILE.items())]
    return [
        Flood("n at its limit", [chat(20, 128, n=widest)], 8),
        Flood("long prompts", [chat(300 + number, 8) for number in range(100)], 2 * seats),
        Flood("maximum outputs", [chat(20, 1500)], 2 * seats),
        Flood("hostile grammars", grammars, MANY_GRAMMARS),
        Flood("slow readers", [chat(20, 600)], 2 * seats, slow=True),
        Flood("16,000 tools", [HOSTILE_BODIES["16,000 tools"]()], 1, hostile=True),
        Flood("4 MiB of brackets", [HOSTILE_BODIES["brackets"]()], 1, hostile=True),
    ]


def _constrained(name: str, spec: GrammarSpec) -> bytes:
    body = {"messages": [{"role": "user", "content": f"Go: {name}."}], "structured_outputs": request_field(spec), "max_tokens": 2}
    # Escaped as ASCII, so that lone surrogates get as far as the server.
    return json.dumps(body).encode("ascii")
