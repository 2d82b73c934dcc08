"""What prompts begin with, for the router: an engine computes a beginning that it has seen before only once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Any

INSTRUCTIONS = frozenset({"system", "developer"})
SHORTEST, LONGEST = 128, 4096
"""In characters; a shorter beginning is not worth to be looked for."""
FIRST = 512
"""Characters that are looked at where a prompt has no instructions: what follows them is mostly the request's own."""
LOOKED_AT = 2000
_NO_TEXT = frozenset({"image_url", "input_audio"})


def prompt_prefix(body: Mapping[str, Any]) -> str:
    """A digest of the tools and of the instructions that the messages begin with, or else of the first `FIRST` characters of the
    prompt; empty where these are few."""
    messages = body.get("messages")
    parts, longest = [body.get("tools"), body.get("prompt")], FIRST
    if isinstance(messages, list):
        instructions = list(takewhile(_instructs, messages))
        parts = [body.get("tools"), instructions or messages[:1]]
        longest = LONGEST if instructions else FIRST
    text = "\n".join(islice(_texts(parts), LOOKED_AT))[:longest]
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest() if len(text) >= SHORTEST else ""


def _instructs(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") in INSTRUCTIONS


def _texts(value: object) -> Iterator[str]:
    """All texts in it, in their order, and numbers as texts: a prompt may be token ids."""
    match value:
        case str(text):
            yield text
        case int(token):
            yield str(token)
        case list(items):
            for item in items:
                yield from _texts(item)
        case dict(items):
            for name, item in items.items():
                if name not in _NO_TEXT:
                    yield from _texts(item)
