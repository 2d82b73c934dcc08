"""Reasoning ahead of constrained answers, in vLLM's front end (0.32: `entrypoints/openai/chat_completion/protocol.py`,
`parser/abstract_parser.py`, `parser/minicpmv.py`).

`include_reasoning: false` lets vLLM constrain an answer from its first token, in the middle of the reasoning that the prompt has begun: the
answer is then taken for reasoning, and left out. And where a prompt's reasoning has ended, a streamed answer is all content, while a whole
one is all reasoning if the parser expects some. Reasoning between marks that vLLM does not keep to is read here (`reasoning/marked.py`).

Grammars of tools have the reasoning in them for Inkling, which calls tools in blocks that stand in place of the text which ends its
reasoning for vLLM (`parser/inkling.py`), and for Muse Glimmer: they hold from the first token.

MiniCPM-V: vLLM makes line breaks of `\\n` in an answer, and so makes its JSON invalid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaMessage, FunctionCall
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser.abstract_parser import DelegatingParser, Parser
from vllm.parser.engine.adapters import ParserEngineReasoningAdapter
from vllm.parser.inkling import InklingParser
from vllm.parser.minicpmv import MiniCPMVUnifiedParser, recover_newlines
from vllm.reasoning.muse_glimmer_reasoning_parser import MuseGlimmerReasoningParser
from vllm.tool_parsers.muse_glimmer_tool_parser import MuseGlimmerToolParser

from model_service.engine.frontend.constrained_calls import is_constrained
from model_service.engine.reasoning.marked import MarkedReader, marks_of, reasoning_tokens
from model_service.engine.reasoning.parsers import (
    is_behind_reasoning,
    keep_ends_of_answers,
    note_prompt,
    read_reasoning_by_prompt,
)

_PROMPT, _READER = "_maskcast_prompt", "_maskcast_reasoning_reader"


def replace_reasoning_parsing() -> None:
    """For all requests of this process."""
    extract, parse_delta = DelegatingParser.extract_reasoning, DelegatingParser.parse_delta

    def extract_reasoning(
        parser: DelegatingParser, text: str, request: ChatCompletionRequest | ResponsesRequest
    ) -> tuple[str | None, str | None]:
        prompt = getattr(parser, _PROMPT, None)
        if prompt and is_constrained(request) and is_behind_reasoning(parser, prompt, request):
            return None, text
        if (reader := _marked_reader(parser, request)) is not None:
            reasoning, content = _read(reader, text, request, is_last=True)
            return reasoning or None, content or None
        if prompt:
            note_prompt(parser, prompt)
        found: tuple[str | None, str | None] = extract(parser, text, request)
        return found

    @wraps(parse_delta)
    def parse_piece(
        parser: DelegatingParser, delta_text: str, delta_token_ids: list[int], request: Any, prompt_token_ids: Any = None, **told: Any
    ) -> DeltaMessage | None:
        state, reasoning = parser._stream_state, ""
        is_first = prompt_token_ids is not None and not state.prompt_reasoning_checked
        if is_first and is_constrained(request) and is_behind_reasoning(parser, prompt_token_ids, request):
            state.prompt_reasoning_checked = state.reasoning_ended = True
        if not state.reasoning_ended and (reader := _marked_reader(parser, request)) is not None:
            state.prompt_reasoning_checked = True
            reasoning, content = _read(reader, delta_text, request, is_last=told["finished"])
            reader.tokens += len(delta_token_ids)
            if content is None:
                return DeltaMessage(reasoning=reasoning) if reasoning else None
            state.reasoning_ended = True
            delta_text, delta_token_ids = content, _last_tokens(parser, delta_token_ids, content)
            reader.tokens -= len(delta_token_ids)
        piece: DeltaMessage | None = parse_delta(parser, delta_text, delta_token_ids, request, prompt_token_ids, **told)
        if reasoning:
            piece = piece or DeltaMessage()
            piece.reasoning = reasoning
        return piece

    read_reasoning_by_prompt()
    keep_ends_of_answers()
    DelegatingParser.parse_delta = parse_piece
    ChatCompletionRequest.resolve_reasoning_ended = reasoning_ended
    DelegatingParser.extract_reasoning = extract_reasoning
    DelegatingParser.set_prompt_token_ids = _keep_prompt
    _keep_escaped_line_breaks()


def reasoning_ended(request: ChatCompletionRequest, parser: Parser | None, prompt: list[int]) -> bool | None:
    """Whether an answer to the prompt begins behind its reasoning; None: the model does not reason."""
    if parser is None or parser.reasoning_parser is None:
        return None
    return _is_in_grammar(request, parser) or is_behind_reasoning(parser, prompt, request)


def _is_in_grammar(request: Any, parser: Parser) -> bool:
    """Whether the grammar of the request has the reasoning in it."""
    reasoner = parser.reasoning_parser
    is_inkling = isinstance(reasoner, ParserEngineReasoningAdapter) and isinstance(reasoner._parser_engine, InklingParser)
    is_muse = isinstance(reasoner, MuseGlimmerReasoningParser) and isinstance(parser.tool_parser, MuseGlimmerToolParser)
    return (is_inkling or is_muse) and is_constrained(request) and bool(request.tools) and request.tool_choice != "none"


def _marked_reader(parser: DelegatingParser, request: Any) -> MarkedReader | None:
    """What reads the reasoning of this answer; None: vLLM does."""
    known = vars(parser)
    if _READER not in known:
        reasoner, known[_READER] = parser.reasoning_parser, None
        marks = marks_of(reasoner) if is_constrained(request) and not _is_in_grammar(request, parser) else None
        if marks is not None:
            reader = known[_READER] = MarkedReader(marks)
            # vLLM would read all of an answer again to count the tokens of each piece.
            vars(reasoner)["count_reasoning_tokens"] = lambda tokens: reader.tokens or reasoning_tokens(marks, reasoner, tokens)
    found: MarkedReader | None = known[_READER]
    return found


def _read(reader: MarkedReader, text: str, request: Any, *, is_last: bool) -> tuple[str, str | None]:
    """The reasoning that the client wants to see of this piece, and the text behind its end."""
    reasoning, content = reader.read(text)
    reasoning += reader.end() if content is None and is_last else ""
    return (reasoning if request.include_reasoning else ""), content


def _last_tokens(parser: DelegatingParser, tokens: list[int], text: str) -> list[int]:
    """Those behind the reasoning, whose text ends with this one: what comes behind it may be held back."""
    reasoner = parser.reasoning_parser
    marks = marks_of(reasoner)
    if (end := reasoner.vocab.get(marks.end if marks is not None else "")) in tokens:
        return tokens[tokens.index(end) + 1 :]
    place, decode = len(tokens), parser.model_tokenizer.decode
    while place and len(decode(tokens[place:])) < len(text):
        place -= 1
    return tokens[place:]


def _keep_escaped_line_breaks() -> None:
    parse_delta = MiniCPMVUnifiedParser.parse_delta

    def parse(
        parser: MiniCPMVUnifiedParser, text: str, request: Any, *arguments: Any, **named: Any
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        reasoning, content, calls = DelegatingParser.parse(parser, text, request, *arguments, **named)
        return recover_newlines(reasoning), content if is_constrained(request) else recover_newlines(content), calls

    @wraps(parse_delta)
    def parse_piece(parser: MiniCPMVUnifiedParser, *, request: Any, **told: Any) -> DeltaMessage | None:
        if is_constrained(request):
            parser._output_normalizer._content = _AsWritten()
        piece: DeltaMessage | None = parse_delta(parser, request=request, **told)
        return piece

    MiniCPMVUnifiedParser.parse = parse
    MiniCPMVUnifiedParser.parse_delta = parse_piece


class _AsWritten:
    """Stands in for vLLM's `EscapedNewlineNormalizer`."""

    def feed(self, text: str, *, final: bool = False) -> str:
        return text


def _keep_prompt(parser: Parser, prompt: Sequence[int]) -> None:
    setattr(parser, _PROMPT, list(prompt))
