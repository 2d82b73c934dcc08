"""What the tenants of this benchmark send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deployments.config import LimitSettings
from grammar_service.spec import GrammarSpec
from tests.hostile_bodies import HOSTILE_BODIES
from tests.hostile_corpus import HOSTILE, request_field

WORD = "river stone lantern quiet morning "
MANY_GRAMMARS = 4
NEW_TEXTS = 200
"""Schemas that nobody has asked for before; their answers are known after a round."""
WAITING = 1_792
"""Seven eighths of the requests that an ingress holds open: what one tenant may have of them."""
LOG_PROBABILITIES = 20
"""Alternatives for each token."""
_PADDING = {"tokenize": True, "padding": "max_length", "max_length": 3_000_000}
_PENALTIES = {"repetition_penalty": 1.1, "presence_penalty": 1.0, "frequency_penalty": 1.0}
_REPETITION = {"max_pattern_size": 30_000, "min_count": 2}


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
    most_tokens = LimitSettings().max_logprob_values // ((LOG_PROBABILITIES + 1) * widest)
    grammars = [_constrained(name, spec) for name, spec in list(HOSTILE.items())]
    return [
        Flood("n at its limit", [chat(20, 128, n=widest)], 8),
        Flood("long prompts", [chat(300 + number, 8) for number in range(100)], 2 * seats),
        Flood("maximum outputs", [chat(20, 1500)], 2 * seats),
        Flood("hostile grammars", grammars, MANY_GRAMMARS),
        Flood("slow readers", [chat(20, 600)], 2 * seats, slow=True),
        Flood("alternatives compared in pairs", [_schema(_pairs(number)) for number in range(NEW_TEXTS)], MANY_GRAMMARS),
        Flood("patterns of names compared in pairs", [_schema(_patterns(number)) for number in range(NEW_TEXTS)], MANY_GRAMMARS),
        Flood("warnings with long names", [_schema(_long_names(number)) for number in range(4)], MANY_GRAMMARS),
        Flood("log probabilities", [chat(20, most_tokens, n=widest, logprobs=True, top_logprobs=LOG_PROBABILITIES)], 4),
        Flood("penalties", [chat(20, 400, **_PENALTIES)], 2 * seats),
        Flood("bodies that wait", [chat(400, 8)], WAITING),
        Flood("large bodies", [chat(200_000, 8)], WAITING),
        Flood("padding", [chat(20, 8, chat_template_kwargs=_PADDING)], 4, hostile=True),
        Flood("beams", [chat(20, 400, use_beam_search=True, n=32)], 4, hostile=True),
        Flood("repetition detection", [chat(20, 400, repetition_detection=_REPETITION)], 4, hostile=True),
        Flood("16,000 tools", [HOSTILE_BODIES["16,000 tools"]()], 1, hostile=True),
        Flood("4 MiB of brackets", [HOSTILE_BODIES["brackets"]()], 1, hostile=True),
    ]


def _constrained(name: str, spec: GrammarSpec) -> bytes:
    body = {"messages": [{"role": "user", "content": f"Go: {name}."}], "structured_outputs": request_field(spec), "max_tokens": 2}
    # Escaped as ASCII, so that lone surrogates get as far as the server.
    return json.dumps(body).encode("ascii")


def _schema(schema: dict[str, Any]) -> bytes:
    format_of = {"type": "json_schema", "json_schema": {"name": "asked", "schema": schema}}
    return json.dumps({"messages": [{"role": "user", "content": "Go."}], "response_format": format_of, "max_tokens": 2}).encode("ascii")


def _pairs(number: int) -> dict[str, Any]:
    return {"oneOf": [{"properties": {f"a{number}-{each}": {"type": "null"}}} for each in range(100)]}


def _patterns(number: int) -> dict[str, Any]:
    return {"anyOf": [{"type": "object", "patternProperties": {f"^x{number}-{each}": {}}} for each in range(80)]}


def _long_names(number: int) -> dict[str, Any]:
    unknown = {f"unknown{each}": 1 for each in range(20)}
    return {"type": "object", "properties": {f"{number}-{each}{'n' * 8_000}": {"type": "boolean", **unknown} for each in range(25)}}
