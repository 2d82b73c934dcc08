"""The messages of a chat request, as far as they are looked at before the engine writes its prompt of them. vLLM's models try some twenty
types for whatever stands in a message, and say of each why it is none: 2 KB of numbers for parts take it 80 ms and 66 MiB (vLLM 0.32,
pydantic 2.13). So they get nothing else than what is known here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deployments.errors import bad_request, over_limit

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
"""Those of OpenAI's API. Chat templates pass over others in silence, or give them to the model as they are."""
LONGEST_FUNCTION_NAME = 256
"""vLLM logs the name of a call whose arguments are no JSON."""
MOST_MEDIA = 16
"""Images of a request: each may take 48 MiB when it is unpacked, whatever its share of the body."""
MOST_ENTRIES = 32
"""Of an object or an array in such a part: its address, its detail, or the shapes of embeddings."""

Reader = Callable[[Any, str], Any]
"""Of a value and its place: the value as the engine is to get it. Raises ApiError."""


class MessageReader:
    """Of one request, whose messages may have `most` parts and calls in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries = self._media = 0
        self._members: Mapping[str, Reader] = {
            "role": _role,
            "content": self._content,
            "name": _function_name,
            "tool_call_id": _text,
            "tool_calls": self._calls,
            "function_call": _function,
            "reasoning": _text,
            "reasoning_content": _text,
            "refusal": _text,
        }
        self._parts: Mapping[str, Mapping[str, Reader]] = {
            "text": {"text": _text},
            "refusal": {"refusal": _text},
            "thinking": {"thinking": _text, "closed": _flag},
            "tool_reference": {"name": _function_name},
        }

    def read(self, messages: Any) -> list[dict[str, Any]]:
        """With the members that are known; others change nothing. Raises ApiError, which names the message at fault."""
        if not isinstance(messages, list) or not messages:
            raise bad_request("'messages' must be an array of at least one message.", "messages")
        return [self._message(message, f"messages[{index}]") for index, message in enumerate(messages)]

    def _message(self, message: Any, place: str) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise bad_request(f"'{place}' must be an object with a 'role'.", place)
        _role(message.get("role"), f"{place}.role")
        return _members(message, place, self._members)

    def _content(self, value: Any, place: str) -> Any:
        if isinstance(value, str):
            return value
        if not isinstance(value, list):
            raise bad_request(f"'{place}' must be a text or an array of parts.", place)
        self._count(len(value), place)
        return [self._part(part, f"{place}[{index}]") for index, part in enumerate(value)]

    def _part(self, part: Any, place: str) -> Any:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            raise bad_request(f"'{place}' must be an object with a 'type'.", place)
        kind = part.get("type")
        known = self._parts.get(kind) if isinstance(kind, str) else None
        if known is not None:
            if next(iter(known)) not in part:
                raise bad_request(f"'{place}' must have a '{next(iter(known))}'.", place)
            return {"type": kind, **_members(part, place, known)}
        self._media += 1  # images; of others the engine says that it takes none
        if self._media > MOST_MEDIA:
            raise over_limit(place, f"A request may have {MOST_MEDIA} parts that are no text.")
        if not _is_small(part):
            raise over_limit(place, f"'{place}' may have objects and arrays of {MOST_ENTRIES} entries at most.")
        return part

    def _calls(self, value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise bad_request(f"'{place}' must be an array.", place)
        self._count(len(value), place)
        return [_call(call, f"{place}[{index}]") for index, call in enumerate(value)]

    def _count(self, more: int, place: str) -> None:
        self._entries += more
        if self._entries > self._most:
            raise over_limit(place, f"The messages of a request may have {self._most:,} parts and calls in all.")


def _is_small(value: Any, levels: int = 3) -> bool:
    if not isinstance(value, dict | list):
        return True
    entries = value.values() if isinstance(value, dict) else value
    return levels > 0 and len(value) <= MOST_ENTRIES and all(_is_small(entry, levels - 1) for entry in entries)


def _members(value: Mapping[str, Any], place: str, known: Mapping[str, Reader]) -> dict[str, Any]:
    found = {name: entry for name, entry in value.items() if name in known and entry is not None}
    return {name: known[name](entry, f"{place}.{name}") for name, entry in found.items()}


def _role(value: Any, place: str) -> str:
    if not isinstance(value, str) or value not in ROLES:
        raise bad_request(f"'{place}' must be one of: {', '.join(map(repr, ROLES))}.", place)
    return value


def _call(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict) or "function" not in value:
        raise bad_request(f"'{place}' must be an object with a 'function'.", place)
    return {"type": "function", **_members(value, place, {"id": _text, "function": _function})}


def _function(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict) or "name" not in value:
        raise bad_request(f"'{place}' must be an object with a 'name' and 'arguments'.", place)
    return _members(value, place, {"name": _function_name, "arguments": _text})


def _function_name(value: Any, place: str) -> str:
    if len(name := _text(value, place)) > LONGEST_FUNCTION_NAME:
        raise over_limit(place, f"'{place}' may have {LONGEST_FUNCTION_NAME} characters at most.")
    return name


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise bad_request(f"'{place}' must be a text.", place)
    return value


def _flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise bad_request(f"'{place}' must be true or false.", place)
    return value
