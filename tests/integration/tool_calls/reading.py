"""Calls as vLLM's parsers read them, whole and in a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager

from deployments.constraints.tool_calls.tools import parse_tools
from model_service.messages import KEY_ARGUMENT


def request(name: str, tools: list[dict[str, Any]]) -> ChatCompletionRequest:
    """As the engine gets it: with a constraint, and what the service adds to the tools for the parser of this name."""
    body: dict[str, Any] = {"tools": json.loads(json.dumps(tools))}
    parse_tools(body, name)
    return ChatCompletionRequest.model_validate(
        {"model": "any", "messages": [{"role": "user", "content": "hello"}], "vllm_xargs": {KEY_ARGUMENT: "key"}, **body}
    )


def read(
    name: str,
    tokens: list[int],
    tokenizer: PreTrainedTokenizerFast,
    tools: list[dict[str, Any]],
    stream: bool,
    reasons: bool = False,
    most: int = 1,
) -> list[tuple[str, str]]:
    """Names and arguments. `reasons`: the model's reasoning is read as well. A stream is of so many tokens at once."""
    asked = request(name, tools)
    parser = ParserManager.get_parser(name, name if reasons else None, True)(tokenizer, asked.tools)
    asked = parser.adjust_request(asked)
    if not stream:
        _, _, calls = parser.parse(tokenizer.decode(tokens), asked, enable_auto_tools=True, model_output_token_ids=tokens)
        return [(call.name, call.arguments) for call in calls or ()]
    pieces = [*deltas(tokens, tokenizer, most)]
    last = len(pieces) - 1
    return merged(parser.parse_delta(text, ids, asked, [], finished=index == last) for index, (text, ids) in enumerate(pieces))


def deltas(tokens: list[int], tokenizer: PreTrainedTokenizerFast, most: int = 1) -> Iterator[tuple[str, list[int]]]:
    """The texts and ids of a stream of so many tokens at once, or of more where a character is not complete."""
    before, waiting = "", list[int]()
    for end, token in enumerate(tokens, 1):
        waiting.append(token)
        if len(waiting) < most and end < len(tokens):
            continue
        text = str(tokenizer.decode(tokens[:end], skip_special_tokens=False))
        if not text.endswith("\ufffd"):
            yield text[len(before) :], waiting
            before, waiting = text, []


def merged(parts: Iterable[DeltaMessage | None]) -> list[tuple[str, str]]:
    """The calls of a stream."""
    found: dict[int, list[str]] = {}
    for part in parts:
        for call in part.tool_calls if part else ():
            name_and_arguments = found.setdefault(call.index, ["", ""])
            name_and_arguments[0] += (call.function and call.function.name) or ""
            name_and_arguments[1] += (call.function and call.function.arguments) or ""
    return [(name, arguments) for _, (name, arguments) in sorted(found.items())]
