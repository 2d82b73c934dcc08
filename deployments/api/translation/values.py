"""Type checks for values in a request that is translated. Values that are passed on are checked as part of the chat completion."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from deployments.errors import ApiError, bad_request

PlacedMessage = tuple[str, dict[str, Any]]
"""A message, and the place in the request that it was made of."""
Event = dict[str, Any]
"""An event of a stream; its member `type` is its name."""
_MESSAGE = re.compile(r"messages\[(\d{1,9})\]")


def text_in(value: Any, place: str) -> str:
    """Raises ApiError, as all of these."""
    if not isinstance(value, str):
        raise bad_request(f"'{place}' must be a text.", place)
    return value


def array_in(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"'{place}' must be an array.", place)
    return value


def entries_of(body: Mapping[str, Any], name: str) -> list[Any]:
    """Of a field that need not be there."""
    return [] if body.get(name) is None else array_in(body[name], name)


def object_in(value: Any, place: str) -> Mapping[str, Any]:
    """`null` is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(f"'{place}' must be an object.", place)
    return value


def unknown_type(place: str, *known: str) -> ApiError:
    """For an object whose `type` is none of those that are known."""
    return bad_request(f"'{place}.type' must be one of: {', '.join(map(repr, known))}.", f"{place}.type")


def split_calls(delta: Mapping[str, Any], open_call: int | None) -> tuple[list[Any], list[Any]]:
    """Pieces of calls in a chunk: of the one that has begun, which come before the chunk's text, and of others. A step of many tokens makes
    one chunk of the end of a call and what follows it."""
    calls = delta.get("tool_calls") or ()
    return [call for call in calls if call["index"] == open_call], [call for call in calls if call["index"] != open_call]


def is_complete_json(arguments: str) -> bool:
    """Whether a call's arguments are JSON to their end."""
    try:
        from_json(arguments)
    except ValueError:
        return False
    return True


def in_request(error: ApiError, messages: Sequence[PlacedMessage], names: Mapping[str, str]) -> ApiError:
    """An error about a chat completion, with the places and field `names` of the request that it was translated from."""

    def place(found: re.Match[str]) -> str:
        index = int(found[1])
        return messages[index][0] if index < len(messages) else found[0]

    def placed(text: str) -> str:
        return _MESSAGE.sub(place, text).replace("].function.", "].")

    def told(text: str) -> str:
        text = placed(text)
        for ours, theirs in names.items():
            text = re.sub(rf"(?:^|(?<=')){re.escape(ours)}(?!\w)", theirs, text)
        return text

    field, hash_, pointer = (error.param or "").partition("#")
    # A name in the message is the field's only where the error is about that: otherwise it may be a text of the client's.
    error.message = told(error.message) if told(field) != field else placed(error.message)
    error.param = f"{told(field)}{hash_}{pointer}" or None
    return error
