"""Reasoning ahead of constrained answers, in vLLM's front end (0.32: `entrypoints/openai/chat_completion/protocol.py`,
`parser/abstract_parser.py`).

`include_reasoning: false` lets vLLM constrain an answer from its first token, in the middle of the reasoning that the prompt has begun: the
answer is then taken for reasoning, and left out. And where a prompt's reasoning has ended, a streamed answer is all content, while a whole
one is all reasoning if the parser expects some.

Inkling calls tools in blocks that stand in place of the text which ends its reasoning for vLLM (`parser/inkling.py`): no constraint would
hold there. Those with tools know of its reasoning (`constraints/tool_calls/token_calls.py`), and hold from the first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser.abstract_parser import DelegatingParser, Parser
from vllm.parser.engine.adapters import ParserEngineReasoningAdapter
from vllm.parser.inkling import InklingParser

from model_service.engine.frontend.constrained_calls import is_constrained
from model_service.engine.reasoning_parsers import (
    grammars_have_reasoning,
    is_behind_reasoning,
    keep_ends_of_answers,
    note_prompt,
    read_reasoning_by_prompt,
)

_PROMPT = "_maskcast_prompt"


def replace_reasoning_parsing() -> None:
    """For all requests of this process."""
    extract, parse_delta = DelegatingParser.extract_reasoning, DelegatingParser.parse_delta

    def extract_reasoning(
        parser: DelegatingParser, text: str, request: ChatCompletionRequest | ResponsesRequest
    ) -> tuple[str | None, str | None]:
        prompt = getattr(parser, _PROMPT, None)
        if prompt and is_constrained(request) and is_behind_reasoning(parser, prompt):
            return None, text
        if prompt:
            note_prompt(parser, prompt)
        found: tuple[str | None, str | None] = extract(parser, text, request)
        return found

    @wraps(parse_delta)
    def parse_piece(
        parser: DelegatingParser, delta_text: str, delta_token_ids: list[int], request: Any, prompt_token_ids: Any = None, **told: Any
    ) -> DeltaMessage | None:
        state = parser._stream_state
        is_first = prompt_token_ids is not None and not state.prompt_reasoning_checked
        if is_first and is_constrained(request) and is_behind_reasoning(parser, prompt_token_ids):
            state.prompt_reasoning_checked = state.reasoning_ended = True
        piece: DeltaMessage | None = parse_delta(parser, delta_text, delta_token_ids, request, prompt_token_ids, **told)
        return piece

    read_reasoning_by_prompt()
    keep_ends_of_answers()
    DelegatingParser.parse_delta = parse_piece
    ChatCompletionRequest.resolve_reasoning_ended = reasoning_ended
    DelegatingParser.extract_reasoning = extract_reasoning
    DelegatingParser.set_prompt_token_ids = _keep_prompt


def reasoning_ended(request: ChatCompletionRequest, parser: Parser | None, prompt: list[int]) -> bool | None:
    """Whether an answer to the prompt begins behind its reasoning; None: the model does not reason."""
    if parser is None or parser.reasoning_parser is None:
        return None
    return _holds_in_reasoning(request, parser) or grammars_have_reasoning(parser) or is_behind_reasoning(parser, prompt)


def _holds_in_reasoning(request: ChatCompletionRequest, parser: Parser) -> bool:
    reasoner = parser.reasoning_parser
    is_inkling = isinstance(reasoner, ParserEngineReasoningAdapter) and isinstance(reasoner._parser_engine, InklingParser)
    return is_inkling and is_constrained(request) and bool(request.tools) and request.tool_choice != "none"


def _keep_prompt(parser: Parser, prompt: Sequence[int]) -> None:
    setattr(parser, _PROMPT, list(prompt))
