"""Which field of a request vLLM's front end has refused (vLLM 0.32: `exceptions.py`, `entrypoints/openai/*/protocol.py`). Its own checks
mostly name one, sometimes by another name than the request; those of pydantic tell a path, and some only a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from pydantic import ValidationError

from model_service.messages import Endpoint

_PROMPT = {Endpoint.CHAT: "messages", Endpoint.COMPLETION: "prompt"}
_OWN_NAMES = frozenset({"input_tokens", "input_text"})
"""What vLLM calls the prompt."""
_SOUND_AND_VIDEO = ("audio_url", "audio_embeds", "input_audio", "video_url", "video_embeds")
_MEDIA = ("image_url", "image_embeds", "image_pil", "input_image", *_SOUND_AND_VIDEO)
"""Types of a message's parts that are no text, and in parts without a type what holds them (vLLM 0.32: `renderers/chat_utils.py`)."""
MOST_FAULTS = 1000
"""That are looked at: all of them are built, 2 us each, before one is read."""
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


def refused_media(body: Mapping[str, Any], is_multimodal: bool) -> tuple[str, str] | None:
    """Why a request for such a model is refused, and the place, such as `messages[0]`, of its first part that is at fault; None: it is not.
    Sound and video are refused from all: nothing has shown that they go with constraints, and their readers are in no lock."""
    taken, kinds = ("text and images, no sound and no video", _SOUND_AND_VIDEO) if is_multimodal else ("text only", _MEDIA)
    place = _place_of(kinds, body)
    return None if place is None else (f"'{place}': this model takes {taken}", place)


def _place_of(kinds: Sequence[str], body: Mapping[str, Any]) -> str | None:
    messages = body.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        parts = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(parts, list) and any(_is_one(kinds, part) for part in parts):
            return f"messages[{number}]"
    return None


def _is_one(kinds: Sequence[str], part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    return any(part.get(name) is not None for name in kinds) if kind is None else kind in kinds
