"""Which field of a request vLLM's front end has refused (vLLM 0.32: `exceptions.py`, `entrypoints/openai/*/protocol.py`). Its own checks
mostly name one, sometimes by another name than the request; those of pydantic tell a path, and some only a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from pydantic import ValidationError

from model_service.messages import Endpoint

_PROMPT = {Endpoint.CHAT: "messages", Endpoint.COMPLETION: "prompt"}
_OWN_NAMES = frozenset({"input_tokens", "input_text"})
"""What vLLM calls the prompt."""
_MEDIA = ("image_url", "image_embeds", "image_pil", "input_image", "audio_url", "audio_embeds", "input_audio", "video_url", "video_embeds")
"""Types of a message's parts that are no text, and in parts without a type what holds them (vLLM 0.32: `renderers/chat_utils.py`)."""
_FIRST_WORD = re.compile(r"[`']?(\w+)")


def refused_field(named: str | None, message: str, endpoint: Endpoint, body: Mapping[str, Any]) -> str | None:
    """The field of `body` that an error is about: the `named` one in the request's terms, or the one that the message begins with."""
    if named in _OWN_NAMES:
        return _PROMPT[endpoint]
    if named == "logprobs" and endpoint is Endpoint.CHAT:
        return "top_logprobs"  # there `logprobs` is a flag
    first = _FIRST_WORD.match(message)
    return named or (first[1] if first and first[1] in body else None)


def told(error: ValidationError, endpoint: Endpoint) -> tuple[str, str]:
    """What the first fault of a request is, and its place, such as `messages[0]`."""
    fault = error.errors()[0]
    name, *path = fault["loc"] or (None,)
    if not isinstance(name, str):
        # The parts of a message are read later than the request, on their own.
        name, path = _PROMPT[endpoint], []
    place = name + "".join(f"[{index}]" for index in takewhile(lambda step: isinstance(step, int), path))
    return f"'{place}': {fault['msg']}", place


def media_place(body: Mapping[str, Any]) -> str | None:
    """Where the first part of a chat stands that is no text, such as `messages[0]`; None: there is none, or it is no chat."""
    messages = body.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        parts = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(parts, list) and any(map(_is_media, parts)):
            return f"messages[{number}]"
    return None


def _is_media(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    return any(part.get(name) is not None for name in _MEDIA) if kind is None else kind in _MEDIA
