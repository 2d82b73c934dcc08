"""Reads the tool calls of constrained answers of Cohere's models (vLLM 0.32: `parser/cohere_command.py`).

vLLM leaves that to the package `cohere_melody`, without which it has no parser for them. The package takes arguments without members for
none, and finds no end of those with a number beyond doubles, half of a surrogate pair or more than a hundred brackets inside one another:
they have the rest of the answer, too. All that is no call, reasoning and citations, is still read by it.

vLLM also puts a grammar of its own into each chat with tools, strict or not, so that each is an error. Grammars are the grammar service's.
"""

from __future__ import annotations

from functools import wraps
from importlib.util import find_spec
from typing import Any

import regex
from vllm.entrypoints.generate.base.protocol import DeltaMessage, FunctionCall

from model_service.engine.frontend.constrained_calls import CallReader, Syntax, argument_schemas, delta_of, is_constrained, whole_answer

Answer = tuple[str | None, str | None, list[FunctionCall] | None]
"""Reasoning, content, calls."""
_READER = "_maskcast_reader"
_SYNTAX = Syntax("<|START_ACTION|>", regex.compile(r'\{"tool_call_id": "[0-9]+", "tool_name": "([^"]+)", "parameters": '))


def read_cohere_calls() -> None:
    """For all requests of this process, if it has the package."""
    if find_spec("cohere_melody") is None:
        return
    from vllm.parser.cohere_command import CohereCommandParser

    read_whole, read_delta = CohereCommandParser.parse, CohereCommandParser.parse_delta

    def adjust_request(_: CohereCommandParser, request: Any) -> Any:
        request.skip_special_tokens = False  # all of the parser goes by marks
        return request

    @wraps(read_whole)
    def parse(parser: CohereCommandParser, model_output: str, request: Any, *others: Any, **more: Any) -> Answer:
        if not _may_call(parser, request):
            unconstrained: Answer = read_whole(parser, model_output, request, *others, **more)
            return unconstrained
        found = whole_answer(CallReader(_SYNTAX, argument_schemas(request)), model_output)
        reasoning, content, _ = read_whole(parser, found.content or "", request, *others, **more)
        calls = [FunctionCall(id=call.id, name=call.function.name, arguments=call.function.arguments) for call in found.tool_calls]
        return reasoning, content, calls or None

    @wraps(read_delta)
    def parse_delta(
        parser: CohereCommandParser, delta_text: str, delta_token_ids: list[int], request: Any, *others: Any, finished: bool, **more: Any
    ) -> DeltaMessage | None:
        if not _may_call(parser, request):
            return read_delta(parser, delta_text, delta_token_ids, request, *others, finished=finished, **more)
        reader: CallReader = vars(parser).setdefault(_READER, CallReader(_SYNTAX, argument_schemas(request)))
        text, pieces = reader.read(delta_text)
        text += reader.end() if finished else ""
        told, calls = read_delta(parser, text, delta_token_ids, request, *others, finished=finished, **more), delta_of("", pieces)
        if told is None or calls is None:
            return told or calls
        told.tool_calls = calls.tool_calls
        return told

    CohereCommandParser.adjust_request = adjust_request
    CohereCommandParser.parse = parse
    CohereCommandParser.parse_delta = parse_delta


def _may_call(parser: Any, request: Any) -> bool:
    return is_constrained(request) and bool(request.tools) and parser._tools_allowed(request)
