"""Requests of OpenAI's Responses API as chat completions.

What has the same name and meaning in both is passed on, and so is what neither knows: the table of request fields says what becomes of it.
`conversation` checks the messages that come of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deployments.api.translation.values import PlacedMessage, array_in, entries_of, object_in, text_in, unknown_type
from deployments.errors import bad_request

NAMES = {
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "messages": "input",
}
"""Of fields that have another name in a chat."""
LOGPROBS = "message.output_text.logprobs"
"""What `include` has where log probabilities are asked for."""
_TRANSLATED = frozenset(
    (
        "input instructions text tools tool_choice reasoning max_output_tokens top_logprobs include truncation previous_response_id store "
        "background stream_options max_tool_calls n"
    ).split()
)
_UNSUPPORTED = {
    "messages": "a response has 'input'",
    "response_format": "a response has 'text.format'",
    "conversation": "this service keeps no conversations; name the response before by 'previous_response_id'",
    "prompt": "this service keeps no prompts; send 'instructions' and 'input'",
}
_MEMBERS = ("reasoning", "content", "tool_calls")
"""Of a message of the model's, in the order in which it says them."""


def chat_options(body: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    """The options of the chat completion for a request. `strict`: whether tools without the field `strict` are strict.

    Raises:
        ApiError: a field that has to be translated is malformed or not supported; `param` names it.
    """
    for name, advice in _UNSUPPORTED.items():
        if body.get(name) is not None:
            raise bad_request(f"'{name}' is not supported: {advice}.", name, "unsupported_parameter")
    if body.get("n") not in (None, 1):
        raise bad_request("'n' is not supported: a response is one answer.", "n", "unsupported_parameter")
    _check_background(body)
    chat = {name: value for name, value in body.items() if name not in _TRANSLATED and name not in _UNSUPPORTED}
    return chat | dict(_options(body)) | dict(_tools(body, strict))


def _check_background(body: Mapping[str, Any]) -> None:
    if not isinstance(background := body.get("background"), bool | None):
        raise bad_request("'background' must be true or false.", "background")
    if not background:
        return
    if body.get("stream"):
        raise bad_request("'background' cannot be combined with 'stream': retrieve the response.", "stream", "unsupported_parameter")
    if body.get("store") is False:
        raise bad_request("'background' needs 'store': the response is retrieved when it has ended.", "store", "unsupported_parameter")


def input_items(body: Mapping[str, Any]) -> list[Any]:
    """A text is a user's message. Raises ApiError."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return array_in(given, "input")


def messages_of(body: Mapping[str, Any], before: Iterable[Any], items: Iterable[Any]) -> list[PlacedMessage]:
    """The instructions, the items of the conversation `before`, and those of the input, as messages. A chat has in one message what the
    model has said in several items: reasoning, text and calls.

    Raises:
        ApiError: an item is malformed or not supported.
    """
    messages = list[PlacedMessage]()
    if (instructions := body.get("instructions")) is not None:
        messages.append(("instructions", {"role": "system", "content": text_in(instructions, "instructions")}))
    for item in before:
        _add(messages, "previous_response_id", item)
    for index, item in enumerate(items):
        _add(messages, f"input[{index}]", item)
    return messages


def _add(messages: list[PlacedMessage], place: str, value: Any) -> None:
    item = object_in(value, place)
    match item.get("type") or "message":
        case "message" if item.get("role") == "assistant":
            _assistant_message(messages, place, "content")["content"] = item.get("content")
        case "message":
            messages.append((place, {"role": item.get("role"), "content": item.get("content")}))
        case "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": text_in(item.get("call_id"), f"{place}.call_id"), "type": "function", "function": function}
            _assistant_message(messages, place, "tool_calls").setdefault("tool_calls", []).append(call)
        case "function_call_output":
            messages += ((place, message) for message in _function_output(item, place))
        case "reasoning":
            if text := _reasoning(item, place):
                _assistant_message(messages, place, "reasoning")["reasoning"] = text
        case _:
            raise unknown_type(place, "message", "function_call", "function_call_output", "reasoning")


def _function_output(item: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    """The texts that a function has returned, and a user's message with its images: a tool's message can have none."""
    output, images = item.get("output"), list[Any]()
    if isinstance(output, list):
        for index, part in enumerate(output):
            if object_in(part, f"{place}.output[{index}]").get("type") not in ("input_text", "output_text", "text", "input_image"):
                raise unknown_type(f"{place}.output[{index}]", "input_text", "input_image")
        images = [part for part in output if _is_image(part)]
        output = [part for part in output if not _is_image(part)]
    yield {"role": "tool", "tool_call_id": text_in(item.get("call_id"), f"{place}.call_id"), "content": output}
    if images:
        yield {"role": "user", "content": images}


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "input_image"


def _assistant_message(messages: list[PlacedMessage], place: str, member: str) -> dict[str, Any]:
    """The assistant message that gets this member: the last message, unless it already has the member or one that follows it in
    `_MEMBERS`. Further calls are added to the same message."""
    last = messages[-1][1] if messages else {}
    after = _MEMBERS[_MEMBERS.index(member) :] if member != "tool_calls" else ()
    if last.get("role") != "assistant" or any(name in last for name in after):
        messages.append((place, last := {"role": "assistant"}))
    return last


def _reasoning(item: Mapping[str, Any], place: str) -> str:
    parts = array_in(item.get("content") or item.get("summary") or [], place)
    return "\n".join(text_in(object_in(part, place).get("text"), place) for part in parts)


def _options(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if body.get("stream") is True:
        yield "stream_options", {"include_usage": True}
    if body.get("max_output_tokens") is not None:
        yield "max_completion_tokens", body["max_output_tokens"]
    if (format_ := object_in(object_in(body.get("text"), "text").get("format"), "text.format")).get("type") not in (None, "text"):
        yield "response_format", _response_format(format_)
    if (effort := object_in(body.get("reasoning"), "reasoning").get("effort")) is not None:
        yield "reasoning_effort", effort
    if body.get("truncation") == "auto":
        yield "truncate_prompt_tokens", -1
    if body.get("top_logprobs") or LOGPROBS in entries_of(body, "include"):
        yield "logprobs", True
        yield "top_logprobs", body.get("top_logprobs")


def _response_format(value: Mapping[str, Any]) -> dict[str, Any]:
    """A chat has the members of a JSON Schema's format in an object of their own."""
    if value.get("type") != "json_schema":
        return dict(value)
    return {"type": "json_schema", "json_schema": {name: member for name, member in value.items() if name != "type"}}


def _tools(body: Mapping[str, Any], strict: bool) -> Iterator[tuple[str, Any]]:
    tools = [_tool(tool, f"tools[{index}]", strict) for index, tool in enumerate(entries_of(body, "tools"))]
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = [object_in(tool, "tool_choice.tools").get("name") for tool in array_in(choice.get("tools"), "tool_choice.tools")]
        names = [name for name in allowed if isinstance(name, str)][: len(tools)]
        tools, choice = [tool for tool in tools if tool["function"].get("name") in names], choice.get("mode")
    elif isinstance(choice, dict) and choice.get("type") == "function":
        choice = {"type": "function", "function": {"name": choice.get("name")}}
    elif isinstance(choice, dict):
        raise unknown_type("tool_choice", "function", "allowed_tools")
    if tools:
        yield "tools", tools
    if choice is not None:
        yield "tool_choice", choice


def _tool(value: Any, place: str, strict: bool) -> dict[str, Any]:
    tool = object_in(value, place)
    if tool.get("type") != "function":
        message = f"'{place}' is not supported: this service has function tools only, which you run yourself."
        raise bad_request(message, place, "unsupported_parameter")
    function = {name: tool[name] for name in ("name", "description", "parameters") if tool.get(name) is not None}
    return {"type": "function", "function": {**function, "strict": strict if tool.get("strict") is None else tool["strict"]}}
