"""What is changed in vLLM's parsers of tool calls (vLLM 0.32: `tool_parsers/deepseekv3_tool_parser.py`, `parser/mistral.py`,
`parser/engine/parser_engine.py`, `parser/inkling.py`, `parser/minimax_m3.py`, `tool_parsers/hy_v4_tool_parser.py`,
`tool_parsers/kimi_k3_tool_parser.py`, `tokenizers/mistral.py`).

DeepSeek V3: in vLLM's regexes, the type and the name of a call match any characters, including the markers around them. The search then
tries each pair of markers: an answer of 33,000 characters blocks the event loop for 3 s.

Mistral: vLLM puts a grammar of its own into each chat, with a function of `mistral_common` that has another argument since 1.13, so that
each is an error. Grammars are the grammar service's.

Of pieces of a character, which are tokens of its own, its tokenizer makes replacement characters where special tokens are wanted.

Hunyuan 4: where one piece of a stream has the end of a call without arguments and a call with some behind it, vLLM takes all in between for
the name.

Kimi K3: vLLM refuses a call of a named tool where it has no grammar of its own for it.

All: vLLM looks for calls in constrained answers of requests without tools as well, and takes marks out that stand in their strings.

Inkling: vLLM hands out arguments character by character, and reads all of them again for each: 20,000 characters block the event loop for
38 s.

Granite, Inkling, Kimi K2 and PLaMo 3: vLLM converts arguments, which are JSON, once more by the `type` of each. It takes a number whose
schema has none (a `$ref`) for a string, and writes `5.0` as `5`, which Granite's parser answers with arguments that break off in a stream.
Those of a constrained answer are as their schema has them. MiniMax M3: what is inside of its values is converted so as well. And its parser
takes the types of the first call that has the same text of arguments, whichever tool that is of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import wraps
from itertools import groupby
from typing import Any

import regex
from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
from vllm.entrypoints.generate.base.protocol import DeltaMessage, FunctionCall
from vllm.parser.abstract_parser import DelegatingParser
from vllm.parser.engine.events import EventType, SemanticEvent
from vllm.parser.engine.parser_engine import ParserEngine
from vllm.parser.granite import GraniteParser
from vllm.parser.inkling import InklingParser
from vllm.parser.kimi_k2 import KimiK2Parser
from vllm.parser.minimax_m3 import MinimaxM3Parser, _minimax_m3_arg_converter
from vllm.parser.mistral import MistralParser
from vllm.parser.plamo3 import Plamo3Parser
from vllm.tokenizers.mistral import MistralTokenizer
from vllm.tool_parsers.deepseekv3_tool_parser import DeepSeekV3ToolParser
from vllm.tool_parsers.hy_v4_tool_parser import HYV4ToolExtractor, StreamDelta
from vllm.tool_parsers.kimi_k3_tool_parser import KimiK3ToolParser
from vllm.tool_parsers.utils import find_tool_properties

from model_service.engine.frontend.call_arguments import with_escaped_surrogates
from model_service.engine.frontend.constrained_calls import is_constrained
from model_service.engine.frontend.required_tool_calls import streamed_arguments

_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
_TO_NAME = r"(?P<type>[^\n<]*)<｜tool▁sep｜>(?P<function_name>[^\n<]*)\n"
_TO_ARGUMENTS = rf"{_TO_NAME}```json\n"
_PATTERNS = {
    "tool_call_regex": regex.compile(rf"<｜tool▁call▁begin｜>{_TO_ARGUMENTS}(?P<function_arguments>.*)\n```<｜tool▁call▁end｜>"),
    "stream_tool_call_portion_regex": regex.compile(rf"{_TO_ARGUMENTS}(?P<function_arguments>.*[^\n`])"),
    "stream_tool_call_name_regex": regex.compile(_TO_NAME),
}

CONVERTING_TWICE: tuple[type[ParserEngine], ...] = (GraniteParser, InklingParser, KimiK2Parser, MinimaxM3Parser, Plamo3Parser)
"""Parsers of arguments that are JSON, which convert them all the same."""


def replace_tool_call_patterns() -> None:
    """Make every new parser of this process use these regexes."""
    make = DeepSeekV3ToolParser.__init__

    @wraps(make)
    def init_with_linear_patterns(parser: DeepSeekV3ToolParser, *arguments: Any, **options: Any) -> None:
        make(parser, *arguments, **options)
        vars(parser).update(_PATTERNS)

    DeepSeekV3ToolParser.__init__ = init_with_linear_patterns


def disable_mistral_grammars() -> None:
    """Let Mistral's parser ask for the marks of calls and of reasoning in the text, and for nothing else."""
    MistralParser.adjust_request = ParserEngine.adjust_request


def keep_split_characters() -> None:
    """Let Mistral's tokenizer give the bytes of tokens that are no text, as it does where special tokens are left out."""
    convert = MistralTokenizer.convert_ids_to_tokens

    @wraps(convert)
    def convert_ids_to_tokens(tokenizer: MistralTokenizer, ids: Sequence[int], skip_special_tokens: bool = False) -> list[str | bytes]:
        tokens: list[str | bytes] = list(convert(tokenizer, ids, skip_special_tokens))
        if skip_special_tokens or not tokenizer.is_tekken:
            return tokens
        pieces = zip(ids, tokens, strict=True)
        return [tokenizer.tokenizer.id_to_byte_piece(one, SpecialTokenPolicy.KEEP) if _NO_TEXT in text else text for one, text in pieces]

    MistralTokenizer.convert_ids_to_tokens = convert_ids_to_tokens


def keep_constrained_arguments() -> None:
    """Let parsers leave the arguments of constrained answers as they are written, or as they have once converted them."""
    note, convert = ParserEngine._check_skip_tool_parsing, ParserEngine._fix_arg_types

    def note_constraint(parser: ParserEngine, request: Any) -> None:
        vars(parser)["is_constrained"] = is_constrained(request)
        note(parser, request)

    def convert_others(parser: ParserEngine, arguments: str, name: str) -> str:
        return arguments if vars(parser).get("is_constrained") else convert(parser, arguments, name)

    for kind in CONVERTING_TWICE:
        kind._check_skip_tool_parsing = note_constraint
        kind._fix_arg_types = convert_others


def convert_each_call_by_its_tool() -> None:
    """For MiniMax M3, whose parser looks for the call by its text: here by the very object."""

    def convert(parser: MinimaxM3Parser, arguments: str, partial: bool) -> str:
        name = next((slot.name for slot in parser._tool_slots if slot.args is arguments), "")
        converted: str = _minimax_m3_arg_converter(arguments, partial, find_tool_properties(parser._tools, name.strip()))
        return converted

    MinimaxM3Parser._convert_args = convert


def join_arguments() -> None:
    """Give Inkling's parser the arguments of a piece at once."""
    make_delta = InklingParser._events_to_delta

    def events_to_delta(parser: InklingParser, events: list[SemanticEvent], finished: bool = False) -> DeltaMessage | None:
        runs = groupby(events, key=lambda event: (event.type, event.tool_index))
        joined = [one for (kind, _), run in runs for one in (_joined_run(run) if kind is EventType.ARG_VALUE_CHUNK else run)]
        delta: DeltaMessage | None = make_delta(parser, joined, finished)
        return delta

    InklingParser._events_to_delta = events_to_delta


def _joined_run(run: Iterable[SemanticEvent]) -> list[SemanticEvent]:
    first, *others = run
    return [replace(first, value="".join(event.value for event in (first, *others)))]


def split_streams_at_calls() -> None:
    """Give Hunyuan 4's parser the end of one call at a time."""
    read = HYV4ToolExtractor.extract_tool_calls_streaming

    @wraps(read)
    def read_each(
        extractor: HYV4ToolExtractor, before: str, _: str, delta: str, *tokens_and_tools: Any, guided: bool = False
    ) -> StreamDelta | None:
        end = extractor.tool_call_end_token
        # Ahead of the calls, which are behind their own mark, nothing is split: tokens tell the parser that the mark is in the piece.
        start = extractor.tool_calls_start_token
        text, mark, calls = ("", "", delta) if start in before else delta.partition(start)
        first, *more = re.split(f"(?<={re.escape(end)})", calls)
        found: list[StreamDelta] = []
        for piece in [text + mark + first, *filter(None, more)]:
            told = read(extractor, before, before + piece, piece, *tokens_and_tools, guided=guided)
            found += [told] if told else []
            before += piece
        return _joined(found)

    HYV4ToolExtractor.extract_tool_calls_streaming = read_each


def admit_named_kimi_calls() -> None:
    """Let Kimi K3's parser ask for marks in the text, and for nothing else, where there is a constraint."""
    adjust = KimiK3ToolParser.adjust_request

    @wraps(adjust)
    def adjust_request(parser: KimiK3ToolParser, request: Any) -> Any:
        if not is_constrained(request):
            return adjust(parser, request)
        request.skip_special_tokens = request.spaces_between_special_tokens = False
        return request

    KimiK3ToolParser.adjust_request = adjust_request


def keep_answers_without_calls() -> None:
    """Parsers look for calls also where a request has no tools, or wants none, and take marks that stand in its answer out of it."""
    extract, extract_delta = DelegatingParser._extract_tool_calls, DelegatingParser._extract_tool_calls_streaming

    def extract_tool_calls(
        parser: DelegatingParser, content: str | None, request: Any, enable_auto_tools: bool = False
    ) -> tuple[list[FunctionCall] | None, str | None]:
        if has_no_calls(request):
            return [], content
        found: tuple[list[FunctionCall] | None, str | None] = extract(parser, content, request, enable_auto_tools)
        return found

    def extract_tool_calls_streaming(parser: DelegatingParser, *arguments: Any, **named: Any) -> tuple[DeltaMessage | None, bool]:
        told = streamed_arguments(arguments, named)
        if has_no_calls(told["request"]):
            return (DeltaMessage(content=told["delta_text"]) if told["delta_text"] else None), False
        found: tuple[DeltaMessage | None, bool] = extract_delta(parser, **told)
        return found

    DelegatingParser._extract_tool_calls = extract_tool_calls
    DelegatingParser._extract_tool_calls_streaming = extract_tool_calls_streaming


def has_no_calls(request: Any) -> bool:
    """Whether a constrained answer is no calls for certain."""
    return is_constrained(request) and (not request.tools or request.tool_choice == "none")


def escape_surrogates() -> None:
    """Arguments that are read and written again may have half of a surrogate pair, which JSON can have as an escape alone."""
    extract, extract_delta = DelegatingParser._extract_tool_calls, DelegatingParser._extract_tool_calls_streaming

    def extract_tool_calls(parser: DelegatingParser, *told: Any, **named: Any) -> tuple[list[FunctionCall] | None, str | None]:
        calls, content = extract(parser, *told, **named)
        for call in calls or ():
            call.arguments = with_escaped_surrogates(call.arguments)
        return calls, content

    def extract_tool_calls_streaming(parser: DelegatingParser, *told: Any, **named: Any) -> tuple[DeltaMessage | None, bool]:
        delta, has_named = extract_delta(parser, *told, **named)
        for call in delta.tool_calls if delta is not None else ():
            if call.function is not None and call.function.arguments:
                call.function.arguments = with_escaped_surrogates(call.function.arguments)
        return delta, has_named

    DelegatingParser._extract_tool_calls = extract_tool_calls
    DelegatingParser._extract_tool_calls_streaming = extract_tool_calls_streaming


def _joined(deltas: list[StreamDelta]) -> StreamDelta | None:
    if not deltas:
        return None
    content = "".join(delta["content"] or "" for delta in deltas)
    return StreamDelta(content=content or None, tool_calls=[call for delta in deltas for call in delta["tool_calls"]])
