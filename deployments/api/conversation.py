"""Validates the messages of a chat request. The engine gets only the members and part types that are listed here.

vLLM's own models are too slow for wrong input: they try some twenty types for each part and report an error for each. 2 KB of wrong parts
take 80 ms and 66 MiB (vLLM 0.32, pydantic 2.13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deployments.constraints.json_shape import MOST_VALUES_IN_TEXT, count_values
from deployments.errors import bad_request, over_limit

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
"""Those of OpenAI's API. Chat templates pass over others in silence, or give them to the model as they are."""
LONGEST_FUNCTION_NAME = 256
"""vLLM logs the name of a call whose arguments are no JSON."""
MOST_MEDIA = 16
"""Images of a request. A decoded image takes up to 64 MiB, however few bytes of the body it has."""
MOST_ENTRIES = 32
"""Tensors in one part of embeddings, and integers in the shape of a tensor."""
_ALIASES = {"input_text": "text", "output_text": "text", "input_image": "image_url"}
"""Part types of OpenAI's Responses API, by their names in chat completions."""
_TEXT_TYPES = frozenset({"text", "refusal", "thinking", "tool_reference"})

Reader = Callable[[Any, str], Any]
"""Takes a value and its place; returns the value for the engine, or raises ApiError."""


class MessageReader:
    """Reads the messages of one request, which may have `most` parts and tool calls in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries = self._media = 0
        self._all_arguments = list[str]()
        self._members: Mapping[str, Reader] = {
            "role": _role,
            "content": self._content,
            "name": _function_name,
            "tool_call_id": _text,
            "tool_calls": self._calls,
            "function_call": self._function,
            "reasoning": _text,
            "reasoning_content": _text,
            "refusal": _text,
        }
        self._parts: Mapping[str, Mapping[str, Reader]] = {
            "text": {"text": _text},
            "refusal": {"refusal": _text},
            "thinking": {"thinking": _text, "closed": _flag},
            "tool_reference": {"name": _function_name},
            "image_url": {"image_url": _address},
            "image_embeds": {"image_embeds": _embeddings},
            "prompt_embeds": {"data": _text},
        }

    def read(self, messages: Any) -> list[dict[str, Any]]:
        """The messages without unknown members. Raises ApiError, which names the place of the fault."""
        if not isinstance(messages, list) or not messages:
            raise bad_request("'messages' must be an array of at least one message.", "messages")
        found = [self._message(message, f"messages[{index}]") for index, message in enumerate(messages)]
        # vLLM parses them as JSON.
        if count_values(self._all_arguments) > MOST_VALUES_IN_TEXT:
            raise over_limit("messages", f"The arguments of all calls of a request may have {MOST_VALUES_IN_TEXT:,} values.")
        return found

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
        if kind is None and "image_url" in part:  # vLLM takes images without a type
            kind = "image_url"
        kind = _ALIASES.get(kind, kind) if isinstance(kind, str) else ""
        if (known := self._parts.get(kind)) is None:
            raise bad_request(f"'{place}.type' must be one of: {', '.join(map(repr, self._parts))}.", f"{place}.type")
        if kind not in _TEXT_TYPES:
            self._media += 1
            if self._media > MOST_MEDIA:
                raise over_limit(place, f"A request may have {MOST_MEDIA} parts that are no text.")
        found = {"type": kind, **_members(part, place, known)}
        if next(iter(known)) not in found:
            raise bad_request(f"'{place}' must have a '{next(iter(known))}'.", place)
        return found

    def _calls(self, value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise bad_request(f"'{place}' must be an array.", place)
        self._count(len(value), place)
        return [self._call(call, f"{place}[{index}]") for index, call in enumerate(value)]

    def _call(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict) or "function" not in value:
            raise bad_request(f"'{place}' must be an object with a 'function'.", place)
        return {"type": "function", **_members(value, place, {"id": _text, "function": self._function})}

    def _function(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict) or value.get("name") is None:
            raise bad_request(f"'{place}' must be an object with a 'name' and 'arguments'.", place)
        return _members(value, place, {"name": _function_name, "arguments": self._arguments})

    def _arguments(self, value: Any, place: str) -> str:
        self._all_arguments.append(text := _text(value, place))
        return text

    def _count(self, more: int, place: str) -> None:
        self._entries += more
        if self._entries > self._most:
            raise over_limit(place, f"The messages of a request may have {self._most:,} parts and calls in all.")


def _address(value: Any, place: str) -> dict[str, str]:
    """Without `uuid`, a name of the client's choice: it is a key of vLLM's image caches, which all tenants share."""
    if isinstance(value, str):
        return {"url": value}
    if not isinstance(value, dict) or "url" not in value:
        raise bad_request(f"'{place}' must be an object with a 'url'.", place)
    return _members(value, place, {"url": _text, "detail": _text})


def _embeddings(value: Any, place: str) -> Any:
    """A base64 tensor, or an object of named tensors and shapes."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or len(value) > MOST_ENTRIES or not all(map(_is_tensor, value.values())):
        raise bad_request(f"'{place}' must be a text, or an object of {MOST_ENTRIES} texts or short arrays of numbers at most.", place)
    return value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and len(value) <= MOST_ENTRIES and all(type(one) is int for one in value))


def _members(value: Mapping[str, Any], place: str, known: Mapping[str, Reader]) -> dict[str, Any]:
    found = {name: entry for name, entry in value.items() if name in known and entry is not None}
    return {name: known[name](entry, f"{place}.{name}") for name, entry in found.items()}


def _role(value: Any, place: str) -> str:
    if not isinstance(value, str) or value not in ROLES:
        raise bad_request(f"'{place}' must be one of: {', '.join(map(repr, ROLES))}.", place)
    return value


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
