"""Which field of a request vLLM's front end has refused (vLLM 0.32: `exceptions.py`, `entrypoints/openai/*/protocol.py`). Its own checks
mostly name one, sometimes by another name than the request; those of pydantic tell a path, and some only a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from pydantic import ValidationError

from model_service.messages import Endpoint

_PROMPT = {Endpoint.CHAT: "messages", Endpoint.COMPLETION: "prompt", Endpoint.TOKENIZE: "prompt", Endpoint.DETOKENIZE: "tokens"}
_OWN_NAMES = frozenset({"input_tokens", "input_text"})
"""What vLLM calls the prompt."""
IMAGE_TYPES = frozenset({"image_url", "image_embeds"})
MOST_FAULTS = 1000
"""Pydantic builds all errors, 2 us each, before the first one can be read."""
_FIRST_WORD = re.compile(r"[`']?(\w+)")


def refused_field(named: str | None, message: str, endpoint: Endpoint, body: Mapping[str, Any]) -> str | None:
    """The field of `body` that an error is about: the `named` one in the request's terms, or the one that the message begins with."""
    if named in _OWN_NAMES:
        return _PROMPT[endpoint]
    if named == "logprobs" and endpoint is Endpoint.CHAT:
        return "top_logprobs"  # there `logprobs` is a flag
    first = _FIRST_WORD.match(message)
    return named or (first[1] if first and first[1] in body else None)


def first_fault(error: ValidationError, endpoint: Endpoint) -> tuple[str, str]:
    """What the first fault of a request is, and its place, such as `messages[0]`."""
    if error.error_count() > MOST_FAULTS:
        return f"'{_PROMPT[endpoint]}' is not what this endpoint takes", _PROMPT[endpoint]
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name, *path = fault["loc"] or (None,)
    if not isinstance(name, str):
        # The parts of a message are read later than the request, on their own.
        name, path = _PROMPT[endpoint], []
    place = name + "".join(f"[{index}]" for index in takewhile(lambda step: isinstance(step, int), path))
    return f"'{place}': {fault['msg']}", place


def refused_images(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a model of texts refuses a request, and the first message with an image, such as `messages[0]`; None: there is none."""
    for number, message in enumerate(body.get("messages", ())):
        parts = message.get("content")
        if isinstance(parts, list) and any(isinstance(part, Mapping) and part.get("type") in IMAGE_TYPES for part in parts):
            place = f"messages[{number}]"
            return f"'{place}': this model takes text only", place
    return None
