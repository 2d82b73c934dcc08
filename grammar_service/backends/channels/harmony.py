"""Answers of gpt-oss in its own format, Harmony: a constraint that holds in the channel `final`, behind any reasoning.

The output begins behind `<|start|>assistant`. Reasoning is any number of messages in the channel `analysis`, and the answer is one in
`final`. The marks are special tokens. The answer's own end (`<|return|>`, `<|call|>`) is a stop token. All of that is a grammar of its own
here, and the constraint's begins where it ends, whichever backend serves it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from grammar_service.backends.backend_layer import BackendLayer
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload, Matcher
from grammar_service.schema.json_text import Json
from grammar_service.spec import GrammarKind, GrammarSpec

if TYPE_CHECKING:
    import torch

    from grammar_service.vocabulary.tokenizer import GrammarTokenizer


def token(spelling: str) -> Json:
    return {"type": "token", "token": spelling}


def _sequence(*elements: Json) -> Json:
    return {"type": "sequence", "elements": [*elements]}


def _text(value: str) -> Json:
    return {"type": "const_string", "value": value}


NEXT_MESSAGE = token("<|end|>"), token("<|start|>"), _text("assistant")
"""Formats of structural tags, as all of these."""


def message(header: str) -> Json:
    """The beginning of one: all ahead of its text."""
    return _sequence(token("<|channel|>"), _text(header), token("<|message|>"))


REASONING: Json = {"type": "star", "content": _sequence(message("analysis"), {"type": "any_tokens"}, *NEXT_MESSAGE)}
_FRAME = GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps({"type": "structural_tag", "format": _sequence(REASONING, message("final"))}))


class HarmonyBackend(BackendLayer):
    """For specs whose answers are in Harmony."""

    PREFIX, FORMAT = "harmony-", 1

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None = None) -> CompiledPayload:
        return self._inner.compile(spec, tokenizer, library_source)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        """Raises InvalidGrammar also where the model has no marks of Harmony."""
        return HarmonyGrammar(harmony_frame(tokenizer), self._inner.load(payload, tokenizer), tokenizer)


@lru_cache(maxsize=2)
def harmony_frame(tokenizer: GrammarTokenizer) -> CompiledGrammar:
    """What is ahead of the answer. Takes seconds for a large vocabulary. Raises InvalidGrammar: the model has no marks of Harmony."""
    from grammar_service.backends.xgrammar.backend import XgrammarBackend

    backend = XgrammarBackend()
    return backend.load(backend.compile(_FRAME, tokenizer).data, tokenizer)


class HarmonyGrammar:
    def __init__(self, frame: CompiledGrammar, inner: CompiledGrammar, tokenizer: GrammarTokenizer) -> None:
        self._frame = frame
        self._inner = inner
        self._stop = tokenizer.stop_token_ids[0]
        self._marks = frozenset(tokenizer.special_tokens.values())

    @property
    def size_bytes(self) -> int:
        return self._inner.size_bytes

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        frame = self._frame.matcher([self._stop], max_rollback_tokens)
        return HarmonyMatcher(frame, self._inner.matcher(stop_token_ids, max_rollback_tokens), self._stop, self._marks)


class HarmonyMatcher:
    """Two matchers of which the second one begins where a stop token would end the first. `marks`: after one of these it may begin."""

    def __init__(self, frame: Matcher, second: Matcher, stop: int, marks: frozenset[int]) -> None:
        self._frame = frame
        self._second = second
        self._stop = stop
        self._marks = marks
        self._behind: int | None = None
        """Tokens of the second one; None: it has not begun."""

    @property
    def inner(self) -> Matcher:
        """The one that takes the next token."""
        return self._frame if self._behind is None else self._second

    @property
    def names_tokens(self) -> bool:
        return self.inner.names_tokens

    def accept(self, token: int) -> bool:
        if not self.inner.accept(token):
            return False
        if self._behind is not None:
            self._behind += 1
        elif token in self._marks and self._frame.accept(self._stop):
            self._frame.rollback(1)
            self._behind = 0
        return True

    def rollback(self, n: int) -> None:
        behind = min(n, self._behind or 0)
        self._second.rollback(behind)
        if self._behind is not None:
            self._behind -= behind
        if n > behind:
            self._frame.rollback(n - behind)
            self._behind = None

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        self.inner.fill(bitmask, row)

    def forced_bytes(self) -> bytes:
        return self.inner.forced_bytes()

    def is_terminated(self) -> bool:
        return self._behind is not None and self._second.is_terminated()

    def reset(self) -> None:
        self._frame.reset()
        self._second.reset()
        self._behind = None
