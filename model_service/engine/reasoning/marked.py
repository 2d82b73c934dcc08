"""Reasoning between texts (vLLM 0.32: `parser/engine/adapters.py`, `parser/mistral.py`, `reasoning/granite_reasoning_parser.py`,
`reasoning/hunyuan_a13b_reasoning_parser.py`, `reasoning/minimax_m2_reasoning_parser.py`, `reasoning/muse_glimmer_reasoning_parser.py`).

vLLM keeps no constraint behind that of some models: Granite, Hunyuan A13B and Muse Glimmer (without tools) tell the engine no place at
which it ends; MiniMax M2's second parser leaves it in the answer; Mistral's takes text ahead of it for the answer's, and an earlier turn's
end for its own. Here a constrained answer of these models begins with the text that begins their reasoning, where the prompt asks for some,
and is constrained behind the first text that ends it, however that is divided into tokens.

Others reason between two tokens (`<think>`, `</think>`), which vLLM takes out of an answer too where its strings spell them. Here what is
behind the first end is the answer's, and no reasoning spells an end.
"""

from __future__ import annotations

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

MOST_TOKENS = 48
"""Of one of these texts."""
_SYSTEM_PROMPT = 2048
"""Tokens at the beginning of a prompt, where the template says that the model is to reason."""
_NO_EFFORT = (None, "none")


@dataclass(frozen=True)
class ReasoningMarks:
    """`begin`: what may stand first, and must where the model `writes_begin`; `end`: what ends the reasoning; `ends`: what does so as well;
    `hidden`: what is no text of it. `is_token`: only a token ends it, whose text is `end`."""

    begin: str
    end: str
    ends: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    writes_begin: bool = False
    is_token: bool = False

    @cached_property
    def pattern(self) -> regex.Pattern[str]:
        ends, hidden = ("|".join(map(regex.escape, texts)) for texts in (self.all_ends, self.hidden))
        return regex.compile(rf"(?P<end>\s*(?:{ends}))|(?P<hidden>{hidden})" if hidden else rf"(?P<end>\s*(?:{ends}))")

    @property
    def all_ends(self) -> tuple[str, ...]:
        return (self.end, *self.ends)


class MarkedReader:
    """Reads one answer in pieces."""

    def __init__(self, marks: ReasoningMarks) -> None:
        self._marks = marks
        self._rest = ""
        self._has_begun = not marks.begin

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
    GraniteReasoningParser: ReasoningMarks(
        "Here is my thought process:", "Here is my response:", ("Here's my response:",), writes_begin=True
    ),
    HunyuanA13BReasoningParser: ReasoningMarks("<think>\n", "\n</think>\n<answer>\n", writes_begin=True),
    MiniMaxM2AppendThinkReasoningParser: ReasoningMarks("", "</think>", writes_begin=True),
    # A model may also leave a message without its end mark, or reason not at all.
    MuseGlimmerReasoningParser: ReasoningMarks(
        _BEFORE,
        _NEXT + _TO_USER,
        (_TO_USER, _TO_USER.removeprefix(_BEFORE)),
        (_NEXT + _TO_SELF, _TO_SELF.removeprefix(_BEFORE)),
        writes_begin=True,
    ),
}
_MISTRAL = {
    "special_token": ReasoningMarks("[THINK]", "[/THINK]", writes_begin=True, is_token=True),
    "text": ReasoningMarks("<think>", "</think>", writes_begin=True),
    "none": None,
}


def marks_of(reasoner: ReasoningParser | None) -> ReasoningMarks | None:
    """None: the model's reasoning is left to vLLM, or it has none."""
    if not isinstance(reasoner, ParserEngineReasoningAdapter):
        return next((marks for kind, marks in _BY_PARSER.items() if isinstance(reasoner, kind)), None)
    if isinstance(reasoner._parser_engine, MistralParser):
        return _MISTRAL[reasoner._parser_engine._reasoning_encoding]
    begin, end = reasoner.reasoning_start_str, reasoner.reasoning_end_str
    is_pair = begin is not None and end == begin.replace("<", "</", 1)
    return ReasoningMarks(begin, end, is_token=True) if is_pair and reasoner.vocab.get(end) in reasoner.reasoning_end_token_ids else None


def asks_for_reasoning(reasoner: ReasoningParser, marks: ReasoningMarks, prompt: Sequence[int], request: Any) -> bool:
    """Whether the model reasons ahead of its answer to this prompt, which the template or the request tells."""
    decode = reasoner.model_tokenizer.decode
    if isinstance(reasoner, GraniteReasoningParser):
        return marks.begin in decode(list(prompt[:_SYSTEM_PROMPT]))
    if isinstance(reasoner, HunyuanA13BReasoningParser | MiniMaxM2AppendThinkReasoningParser):
        return not decode(list(prompt[-MOST_TOKENS:])).rstrip().endswith("</think>")
    if isinstance(reasoner, MuseGlimmerReasoningParser):
        return not decode(list(prompt[-MOST_TOKENS:])).endswith(_TO_USER)
    return _effort(request) not in _NO_EFFORT or marks.begin in decode(list(prompt[:_SYSTEM_PROMPT]))


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
        known = len(tokens) - len(list(delta))
        window = list(tokens[max(self._prompt_tokens, known - MOST_TOKENS) :])
        behind = len(tokens) - known
        before, text = (self._decode(part) for part in (window[: len(window) - behind], window))
        return any(text.find(end, max(0, len(before) - len(end) + 1)) >= 0 for end in self._ends)


class MisplacedEnds:
    """Tokens that end the reasoning at no place at which an answer could begin: they have more behind the mark, or spell one that is a
    token."""

    def __init__(self, marks: ReasoningMarks, vocabulary: Sequence[bytes]) -> None:
        self._ends = [end.encode() for end in marks.all_ends]
        self._tokens: dict[bytes, set[int]] = {}
        """By the part of the mark that is ahead of the token."""
        for token, text in enumerate(vocabulary):
            for end in self._ends:
                if not marks.is_token:
                    self._note(token, text[:-1], end)
                elif text != end:
                    self._note(token, text, end)
        self.behind_drafts = frozenset[int]() if marks.is_token else frozenset[int]().union(*self._tokens.values())
        """Behind a text that nobody tells. That a draft spells a token is none of its likely mistakes."""

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
