"""What is changed in vLLM's parsers of reasoning (vLLM 0.32: `reasoning/minimax_m3_reasoning_parser.py`,
`reasoning/muse_glimmer_reasoning_parser.py`).

MiniMax M3: where the chat's template is told that the model reasons, vLLM's core never sees the end of the reasoning, and where it is not,
takes the first token for the end, or an earlier turn's. A mark of the beginning within the reasoning, or in the answer, takes all ahead of
it for the answer's. Whether the reasoning is open is told by the prompt here, and then all up to its end mark is reasoning.

Muse Glimmer: a stream holds text back that could become a header (` to=…`), at the end of the answer too, and loses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vllm.parser.abstract_parser import Parser
from vllm.reasoning.minimax_m3_reasoning_parser import MiniMaxM3ReasoningParser
from vllm.reasoning.muse_glimmer_reasoning_parser import MuseGlimmerReasoningParser

from model_service.engine.reasoning.marked import asks_for_reasoning, marks_of

_is_end_of_vllm = MiniMaxM3ReasoningParser.is_reasoning_end_streaming
_whole_of_vllm = MiniMaxM3ReasoningParser.extract_reasoning
_segments_of_vllm = MiniMaxM3ReasoningParser._visible_segments
_tail_of_vllm = MuseGlimmerReasoningParser.get_streaming_fallback_content
_OPEN, _END_OF_MESSAGE = "_maskcast_open", "<|eot|>"


def read_reasoning_by_prompt() -> None:
    """Let MiniMax M3's parsers of this process go by the prompt."""
    MiniMaxM3ReasoningParser.adjust_initial_state_from_prompt = _note_prompt
    MiniMaxM3ReasoningParser.is_reasoning_end_streaming = _has_ended
    MiniMaxM3ReasoningParser.extract_reasoning = _whole
    MiniMaxM3ReasoningParser._visible_segments = _segments


def keep_ends_of_answers() -> None:
    """Let Muse Glimmer's parser hand over at the end of a stream what it holds back."""

    def tail(parser: MuseGlimmerReasoningParser, text: str, request: Any) -> str | None:
        found: str | None = _tail_of_vllm(parser, text + _END_OF_MESSAGE, request)
        return found

    MuseGlimmerReasoningParser.get_streaming_fallback_content = tail


def is_behind_reasoning(parser: Parser, prompt: list[int], request: Any) -> bool:
    """Whether a constrained answer to this prompt begins with what is constrained. MiniMax M3 may reason without being asked to: then it
    does not."""
    reasoner = parser.reasoning_parser
    if isinstance(reasoner, MiniMaxM3ReasoningParser):
        return not _is_open(reasoner, prompt)
    if (marks := marks_of(reasoner)) is not None:
        return not asks_for_reasoning(reasoner, marks, prompt, request)
    return bool(parser.is_reasoning_end(prompt))


def note_prompt(parser: Parser, prompt: list[int]) -> None:
    """Ahead of a whole answer; in a stream vLLM does."""
    if isinstance(parser.reasoning_parser, MiniMaxM3ReasoningParser):
        _note_prompt(parser.reasoning_parser, prompt)


def _is_open(parser: MiniMaxM3ReasoningParser, prompt: Sequence[int]) -> bool:
    """Whether the prompt ends with the mark of the beginning. Elsewhere it may be a user's text, or an earlier turn's."""
    begun = parser._rfind_token_sequence(prompt, parser._start_token_ids)
    return begun >= 0 and not parser._decode_text(list(prompt[begun + len(parser._start_token_ids) :])).strip()


def _note_prompt(parser: MiniMaxM3ReasoningParser, prompt: Sequence[int]) -> None:
    if _is_open(parser, prompt):
        parser._initial_in_reasoning = parser._reasoning_active_streaming = True


def _has_ended(parser: MiniMaxM3ReasoningParser, tokens: Sequence[int], delta: Iterable[int]) -> bool:
    """`tokens` are those of the answer up to the `delta`'s end, in the core behind those of the prompt."""
    last, known = list(delta), vars(parser)
    if _OPEN not in known:
        known[_OPEN] = parser._initial_in_reasoning or _is_open(parser, tokens[: len(tokens) - len(last)])
    if not known[_OPEN] or parser._reasoning_ended_streaming:
        return bool(_is_end_of_vllm(parser, tokens, last))
    # The end mark may be spelled, with a token for each character.
    behind = list(tokens[max(len(tokens) - len(last) - len(parser.end_token), 0) :])
    return parser.end_token in parser._decode_text(behind).rpartition(parser.start_token)[2]


def _whole(parser: MiniMaxM3ReasoningParser, text: str, request: Any) -> tuple[str | None, str | None]:
    if not parser._initial_in_reasoning:
        found: tuple[str | None, str | None] = _whole_of_vllm(parser, text, request)
        return found
    reasoning, _, content = text.removeprefix(parser.start_token).partition(parser.end_token)
    return reasoning, content or None


def _segments(parser: MiniMaxM3ReasoningParser, text: str) -> tuple[str | None, str | None]:
    if not parser._initial_in_reasoning:
        found: tuple[str | None, str | None] = _segments_of_vllm(parser, text)
        return found
    if parser.start_token.startswith(text):
        return None, None
    reasoning, end, content = text.removeprefix(parser.start_token).partition(parser.end_token)
    if not end:
        reasoning = parser._strip_partial_marker_suffix(reasoning, parser.end_token)
    return reasoning or None, content or None
