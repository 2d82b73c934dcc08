"""Reasoning between texts (vLLM 0.32: `parser/engine/adapters.py`, `parser/mistral.py`, `reasoning/granite_reasoning_parser.py`,
`reasoning/hunyuan_a13b_reasoning_parser.py`, `reasoning/minimax_m2_reasoning_parser.py`, `reasoning/muse_glimmer_reasoning_parser.py`).

vLLM keeps no constraint behind that of some models: Granite, Hunyuan A13B and Muse Glimmer (without tools) tell the engine no place at
which it ends; MiniMax M2's second parser leaves it in the answer; Mistral's takes text ahead of it for the answer's, and an earlier turn's
end for its own. Here a constrained answer of these models begins with the text that begins their reasoning, where the prompt asks for some,
and is constrained behind the first text that ends it, however that is divided into tokens.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import regex
from vllm.parser.engine.adapters import ParserEngineReasoningAdapter
from vllm.parser.mistral import MistralParser
from vllm.reasoning import ReasoningParser
from vllm.reasoning.granite_reasoning_parser import GraniteReasoningParser
from vllm.reasoning.hunyuan_a13b_reasoning_parser import HunyuanA13BReasoningParser
from vllm.reasoning.minimax_m2_reasoning_parser import MiniMaxM2AppendThinkReasoningParser
from vllm.reasoning.muse_glimmer_reasoning_parser import MuseGlimmerReasoningParser

THINK_END = "</think>"
MOST_TOKENS = 48
"""Of one of these texts."""
_SYSTEM_PROMPT = 2048
"""Tokens at the beginning of a prompt, where the template says that the model is to reason."""
_USER_TURNS = ("<|start_of_role|>user", "[INST]")
"""What begins the first one, of models whose system prompt says that they are to reason."""


@dataclass(frozen=True)
class ReasoningMarks:
    """`begin`: what stands first, by the model's own hand where it `writes_begin`; `end`: what ends the reasoning; `ends`: what does so as
    well; `hidden`: what is no text of it. `is_token`: both are special tokens."""

    begin: str
    end: str
    ends: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    writes_begin: bool = True
    is_token: bool = False

    @cached_property
    def pattern(self) -> regex.Pattern[str]:
        ends, hidden = ("|".join(map(regex.escape, texts)) for texts in (self.all_ends, self.hidden))
        return regex.compile(rf"(?P<end>{ends})|(?P<hidden>{hidden})" if hidden else rf"(?P<end>{ends})")

    @cached_property
    def end_pattern(self) -> regex.Pattern[str]:
        return regex.compile("|".join(map(regex.escape, self.all_ends)))

    @property
    def all_ends(self) -> tuple[str, ...]:
        return (self.end, *self.ends)

    def is_open_in(self, prompt: str) -> bool:
        """Whether the prompt ends within the reasoning."""
        begun = prompt.rfind(self.begin.strip())
        return begun >= 0 and all(prompt.rfind(end.strip()) < begun for end in (*self.all_ends, THINK_END))


class MarkedReader:
    """Reads one answer in pieces."""

    def __init__(self, marks: ReasoningMarks) -> None:
        self.tokens = 0
        """Of the reasoning, by whoever has them."""
        self._marks = marks
        self._rest = ""
        self._has_begun = False

    def read(self, piece: str) -> tuple[str, str | None]:
        """The reasoning that can be told by now, and the text behind its end; None: it goes on."""
        self._rest += piece
        if not self._has_begun:
            if len(self._rest) < len(self._marks.begin) and self._marks.begin.startswith(self._rest):
                return "", None
            self._has_begun, self._rest = True, self._rest.removeprefix(self._marks.begin)
        told = list[str]()
        while (found := self._marks.pattern.search(self._rest, partial=True)) is not None:
            told.append(self._rest[: found.start()])
            if found.partial:
                self._rest = self._rest[found.start() :]
                return "".join(told), None
            self._rest = self._rest[found.end() :]
            if found.lastgroup == "end":
                return "".join(told), self._rest
        told.append(self._rest)
        self._rest = ""
        return "".join(told), None

    def end(self) -> str:
        """What has waited for the rest of a mark."""
        left, self._rest = self._rest if self._has_begun else "", ""
        return left


_BEFORE, _NEXT = " to=", "<|eom|><|start|>assistant"
_TO_SELF, _TO_USER = f"{_BEFORE}self<|message|>", f"{_BEFORE}user<|message|>"
_BY_PARSER: dict[type[ReasoningParser], ReasoningMarks] = {
    GraniteReasoningParser: ReasoningMarks("Here is my thought process:", "Here is my response:", ("Here's my response:",)),
    HunyuanA13BReasoningParser: ReasoningMarks("<think>\n", f"{THINK_END}\n<answer>\n"),
    MiniMaxM2AppendThinkReasoningParser: ReasoningMarks("<think>", THINK_END, writes_begin=False),
    # A model may also leave a message without its end mark, or reason not at all.
    MuseGlimmerReasoningParser: ReasoningMarks(
        _BEFORE,
        _NEXT + _TO_USER,
        (_TO_USER, _TO_USER.removeprefix(_BEFORE)),
        (_NEXT + _TO_SELF, _TO_SELF.removeprefix(_BEFORE)),
    ),
}
_MISTRAL = {
    "special_token": ReasoningMarks("[THINK]", "[/THINK]", is_token=True),
    "text": ReasoningMarks("<think>", THINK_END),
    "none": None,
}


def marks_of(reasoner: ReasoningParser | None) -> ReasoningMarks | None:
    """None: the model's reasoning is left to vLLM, or it has none."""
    if isinstance(reasoner, ParserEngineReasoningAdapter) and isinstance(reasoner._parser_engine, MistralParser):
        return _MISTRAL[reasoner._parser_engine._reasoning_encoding]
    return next((marks for kind, marks in _BY_PARSER.items() if isinstance(reasoner, kind)), None)


def reasoning_tokens(marks: ReasoningMarks, reasoner: ReasoningParser, tokens: Sequence[int]) -> int:
    """How many of an answer's are of its reasoning, with its marks."""
    return bisect_left(
        range(len(tokens)), True, key=lambda count: marks.end_pattern.search(reasoner.model_tokenizer.decode(tokens[:count])) is not None
    )


def asks_for_reasoning(reasoner: ReasoningParser, marks: ReasoningMarks, prompt: Sequence[int], request: Any) -> bool:
    """Whether the model reasons ahead of its answer to this prompt, which the template or the request tells."""
    if getattr(request, "continue_final_message", False):
        content = request.messages[-1].get("content") if request.messages else None
        return isinstance(content, str) and marks.is_open_in(content)
    if isinstance(reasoner, HunyuanA13BReasoningParser | MiniMaxM2AppendThinkReasoningParser):
        return not end_of(prompt, reasoner).rstrip().endswith(THINK_END)
    if isinstance(reasoner, MuseGlimmerReasoningParser):
        return True
    if (effort := _effort(request)) is not None:
        return effort != "none"
    system_prompt = reasoner.model_tokenizer.decode(list(prompt[:_SYSTEM_PROMPT]))
    return marks.begin in min((system_prompt.partition(turn)[0] for turn in _USER_TURNS), key=len)


def end_of(prompt: Sequence[int], reasoner: ReasoningParser) -> str:
    """As far as a prefilled answer may be long."""
    return str(reasoner.model_tokenizer.decode(list(prompt[-_SYSTEM_PROMPT:])))


def _effort(request: Any) -> str | None:
    """Of a chat, or of a response."""
    of_template = (getattr(request, "chat_template_kwargs", None) or {}).get("reasoning_effort")
    found: str | None = getattr(request, "reasoning_effort", None) or getattr(getattr(request, "reasoning", None), "effort", None)
    return found or of_template


class EndSearch:
    """Stands in for `is_reasoning_end_streaming` of the parser of one request, whose prompt has so many tokens."""

    def __init__(self, marks: ReasoningMarks, reasoner: ReasoningParser, prompt_tokens: int) -> None:
        self._ends = marks.all_ends
        self._decode = reasoner.model_tokenizer.decode
        self._prompt_tokens = prompt_tokens

    def __call__(self, tokens: Sequence[int], delta: Iterable[int]) -> bool:
        """Whether the reasoning ends within the `delta`, the last ones of these tokens of the prompt and the answer."""
        last = list(delta)
        told = self._decode(last)
        if not any(end[-1] in told for end in self._ends):
            return False
        known = len(tokens) - len(last)
        window = list(tokens[max(self._prompt_tokens, known - MOST_TOKENS) :])
        behind = len(tokens) - known
        before, text = (self._decode(part) for part in (window[: len(window) - behind], window))
        return any(text.find(end, max(0, len(before) - len(end) + 1)) >= 0 for end in self._ends)


class Straddling:
    """Tokens with the end of a mark and more behind it: no place in them could be the first one of the constrained answer."""

    def __init__(self, marks: ReasoningMarks, vocabulary: Sequence[bytes]) -> None:
        self._ends = [end.encode() for end in marks.all_ends]
        self._tokens: dict[bytes, set[int]] = {}
        """By the part of the mark that is ahead of the token."""
        for token, text in enumerate(vocabulary):
            for end in self._ends:
                self._note(token, text[:-1], end)
        self.tokens = frozenset[int]().union(*self._tokens.values())

    def behind(self, written: bytes) -> frozenset[int]:
        """Those that must not follow this text."""
        return frozenset[int]().union(*(tokens for ahead, tokens in self._tokens.items() if written.endswith(ahead)))

    def _note(self, token: int, text: bytes, end: bytes) -> None:
        place = text.find(end[-1:])
        while place >= 0:
            head = text[: place + 1]
            if end.endswith(head):
                self._tokens.setdefault(end[: len(end) - len(head)], set()).add(token)
            elif head.endswith(end):
                self._tokens.setdefault(b"", set()).add(token)
            place = text.find(end[-1:], place + 1)
