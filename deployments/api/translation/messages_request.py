"""Requests of Anthropic's Messages API as chat completions.

What has the same name and meaning in both is passed on, and so is what neither knows: the table of request fields says what becomes of it.
`conversation` checks the messages that come of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from deployments.api.request_fields.table import NO_EFFECT
from deployments.api.translation.values import PlacedMessage, array_in, entries_of, object_in, text_in, unknown_type
from deployments.errors import bad_request
from grammar_service.warning import ConstraintWarning

THINKING_HAS_NO_EFFECT = ConstraintWarning(
    NO_EFFECT, "/thinking", "'thinking' has no effect: this model does not reason, or vLLM does not bound its reasoning."
)
BILLING = "x-anthropic-billing-header"
"""Claude Code begins its system's texts with one of these, for Anthropic. It is another one in each request, so that no prompt would begin
as the one before."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
NAMES = {
    "response_format.json_schema": "output_config.format",
    "response_format": "output_config.format",
    "reasoning_effort": "output_config.effort",
    "thinking_token_budget": "thinking.budget_tokens",
    "stop": "stop_sequences",
}
"""Of fields that have another name in a chat."""
_TRANSLATED = frozenset(
    {"messages", "system", "stop_sequences", "tools", "tool_choice", "thinking", "output_config", "output_format", "stream_options", "n"}
)


def chat_options(body: Mapping[str, Any], reasons: bool) -> tuple[dict[str, Any], list[ConstraintWarning]]:
    """The options of the chat completion for a request, and warnings for what has no effect. `reasons`: whether the model does, and
    takes a budget for it.

    Raises:
        ApiError: a part that has to be translated is malformed or not supported; `param` names it.
    """
    if body.get("n") not in (None, 1):
        raise bad_request("'n' is not supported: a message is one answer.", "n", "unsupported_parameter")
    chat = {name: value for name, value in body.items() if name not in _TRANSLATED}
    chat |= _options(body)
    warnings = []
    thinking = object_in(body.get("thinking"), "thinking")
    if thinking.get("type") == "disabled":
        chat["reasoning_effort"] = "none"
    elif thinking.get("type") == "enabled" and reasons:
        chat["thinking_token_budget"] = thinking.get("budget_tokens")
    elif thinking and not reasons:
        warnings.append(THINKING_HAS_NO_EFFECT)
    return chat, warnings


def _options(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if body.get("stop_sequences") is not None:
        yield "stop", body["stop_sequences"]
    if body.get("stream") is True:
        yield "stream_options", {"include_usage": True, "continuous_usage_stats": True}
    if tools := entries_of(body, "tools"):
        yield "tools", [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    if choice := object_in(body.get("tool_choice"), "tool_choice"):
        yield "tool_choice", _choice(choice)
        if choice.get("disable_parallel_tool_use") is not None:
            yield "parallel_tool_calls", not choice["disable_parallel_tool_use"]
    output = object_in(body.get("output_config"), "output_config")
    if output.get("effort") is not None:
        yield "reasoning_effort", output["effort"]
    given = {"output_config.format": output.get("format"), "output_format": body.get("output_format")}
    formats = {place: value for place, value in given.items() if value is not None}
    if len(formats) + (body.get("response_format") is not None) > 1:
        raise bad_request("The request has more than one format; keep one.", "output_config.format", "conflicting_constraints")
    for place, value in formats.items():
        yield "response_format", _response_format(value, place)


def _response_format(value: Any, place: str) -> dict[str, Any]:
    found = object_in(value, place)
    if found.get("type") != "json_schema" or "schema" not in found:
        raise bad_request(f"'{place}' must be an object with the type 'json_schema' and a 'schema'.", place)
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": found["schema"], "strict": True}}


def _tool(value: Any, place: str) -> dict[str, Any]:
    tool = object_in(value, place)
    if tool.get("type", "custom") not in (None, "custom"):
        message = f"'{place}' is a tool of Anthropic's servers; this service has only those with an 'input_schema' that you run yourself."
        raise bad_request(message, place, "unsupported_parameter")
    members = {"name": tool.get("name"), "description": tool.get("description"), "parameters": tool.get("input_schema")}
    function = {name: member for name, member in members.items() if member is not None}
    return {"type": "function", "function": {**function, "strict": tool.get("strict") is True}}


def _choice(choice: Mapping[str, Any]) -> Any:
    kind = choice.get("type")
    if kind == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise bad_request("'tool_choice.type' must be one of: 'auto', 'any', 'tool', 'none'.", "tool_choice.type")
    return _CHOICES[kind]


def messages_of(body: Mapping[str, Any]) -> list[PlacedMessage]:
    """The system's text and all messages, as those of a chat. Raises ApiError: a part of one is malformed or not supported."""
    messages = list(_system(body.get("system")))
    for index, value in enumerate(array_in(body.get("messages"), "messages")):
        place = f"messages[{index}]"
        messages += ((place, message) for message in _message(object_in(value, place), place))
    return messages


def _system(value: Any) -> Iterator[PlacedMessage]:
    if isinstance(value, str):
        content: Any = value
    else:
        texts = [_text(block, "system") for block in array_in(value or [], "system")]
        content = [text for text in texts if not text["text"].startswith(BILLING)]
    if content:
        yield "system", {"role": "system", "content": content}


def _message(message: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise bad_request(f"'{place}.role' must be 'user', 'assistant' or 'system'.", f"{place}.role")
    if isinstance(content, str):
        yield {"role": role, "content": content}
    elif role == "assistant":
        yield _assistant(array_in(content, f"{place}.content"), f"{place}.content")
    else:
        yield from _asked(role, array_in(content, f"{place}.content"), f"{place}.content")


def _assistant(blocks: list[Any], place: str) -> dict[str, Any]:
    """What the model has said: its reasoning, text and calls, each of which a chat message has one member for."""
    texts, calls, thoughts = list[Any](), list[Any](), list[str]()
    for index, value in enumerate(blocks):
        at = f"{place}[{index}]"
        block = object_in(value, at)
        match block.get("type"):
            case "text":
                texts.append(_text(block, at))
            case "tool_use":
                # The standard library's encoder would hold the interpreter for 80 ms where this one takes 8.
                arguments = msgspec.json.encode(object_in(block.get("input"), f"{at}.input")).decode()
                function = {"name": text_in(block.get("name"), f"{at}.name"), "arguments": arguments}
                calls.append({"id": text_in(block.get("id"), f"{at}.id"), "type": "function", "function": function})
            case "thinking":
                thoughts.append(text_in(block.get("thinking"), f"{at}.thinking"))
            case "redacted_thinking":
                pass  # nobody but its maker can read it
            case _:
                raise unknown_type(at, "text", "tool_use", "thinking")
    message: dict[str, Any] = {"role": "assistant", "content": texts or None}
    if calls:
        message["tool_calls"] = calls
    if thoughts:
        message["reasoning"] = "\n".join(thoughts)
    return message


def _asked(role: str, blocks: list[Any], place: str) -> Iterator[dict[str, Any]]:
    """A user's texts and images, and the results of tools, which are messages of their own in a chat."""
    parts = list[Any]()
    for index, value in enumerate(blocks):
        at = f"{place}[{index}]"
        block = object_in(value, at)
        if block.get("type") != "tool_result":
            parts.append(_part(block, at))
            continue
        texts, images = _result(block.get("content"), f"{at}.content")
        parts += images
        yield {"role": "tool", "tool_call_id": text_in(block.get("tool_use_id"), f"{at}.tool_use_id"), "content": texts}
    if parts or not blocks:
        yield {"role": role, "content": parts}


def _result(value: Any, place: str) -> tuple[Any, list[Any]]:
    """Its texts, and its images, which only a user's message can have."""
    if value is None or isinstance(value, str):
        return value or "", []
    found = [_part(object_in(block, f"{place}[{index}]"), f"{place}[{index}]") for index, block in enumerate(array_in(value, place))]
    return [part for part in found if part["type"] == "text"], [part for part in found if part["type"] != "text"]


def _part(block: Mapping[str, Any], place: str) -> dict[str, Any]:
    source = block.get("source")
    match block.get("type"):
        case "text":
            return _text(block, place)
        case "image":
            return {"type": "image_url", "image_url": {"url": _address(object_in(source, f"{place}.source"), f"{place}.source")}}
        case "document" if isinstance(source, dict) and source.get("type") == "text":
            return {"type": "text", "text": text_in(source.get("data"), f"{place}.source.data")}
        case _:
            raise unknown_type(place, "text", "image", "tool_result", "document (of plain text)")


def _address(source: Mapping[str, Any], place: str) -> str:
    match source.get("type"):
        case "url":
            return text_in(source.get("url"), f"{place}.url")
        case "base64":
            kind = text_in(source.get("media_type"), f"{place}.media_type")
            return f"data:{kind};base64,{text_in(source.get('data'), f'{place}.data')}"
        case _:
            raise unknown_type(place, "base64", "url")


def _text(value: Any, place: str) -> dict[str, Any]:
    return {"type": "text", "text": text_in(object_in(value, place).get("text"), f"{place}.text")}
