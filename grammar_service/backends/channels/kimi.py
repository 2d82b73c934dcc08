"""Answers of Kimi K3, whose text stands in the channel `response`: a constraint that holds there.

The output begins behind the reasoning, or, where the prompt has begun the channel, in it. The marks are special tokens with a name between
them, as the tokenizer writes it. Behind the channel the message may be closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from grammar_service.backends.backend_layer import BackendLayer
from grammar_service.backends.layer import Layer
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload, Matcher
from grammar_service.errors import InvalidGrammar
from grammar_service.spec import GrammarSpec

if TYPE_CHECKING:
    import torch

    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

OPEN, CLOSE, SEPARATOR = "<|open|>", "<|close|>", "<|sep|>"


@dataclass(frozen=True, slots=True)
class ChannelTokens:
    """`head` begins the channel, `tail` ends it behind its first token, `last`, and `end` closes the message."""

    head: tuple[int, ...]
    last: int
    tail: tuple[int, ...]
    end: tuple[int, ...]
    vocabulary: Sequence[bytes]

    @classmethod
    def of(cls, tokenizer: GrammarTokenizer) -> ChannelTokens:
        """Raises InvalidGrammar: the model has no such marks."""
        marks = tokenizer.special_tokens
        if missing := [mark for mark in (OPEN, CLOSE, SEPARATOR) if mark not in marks]:
            raise InvalidGrammar(f"the model has no special token {missing[0]!r}", "")
        response, message = (tuple(tokenizer.encode(name)) for name in ("response", "message"))
        tail, end = (*response, marks[SEPARATOR]), (marks[CLOSE], *message, marks[SEPARATOR])
        return cls((marks[OPEN], *response, marks[SEPARATOR]), marks[CLOSE], tail, end, tokenizer.vocabulary)

    def text(self, tokens: Sequence[int]) -> bytes:
        """Of those ahead of the first special one."""
        return b"".join(takewhile(bool, (self.vocabulary[token] for token in tokens)))


class KimiBackend(BackendLayer):
    """For specs whose answers are in this channel."""

    PREFIX, FORMAT = "kimi-", 1

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None = None) -> CompiledPayload:
        return self._inner.compile(spec, tokenizer, library_source)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        """Raises InvalidGrammar also where the model has no marks of channels."""
        return KimiGrammar(self._inner.load(payload, tokenizer), ChannelTokens.of(tokenizer), tokenizer)


class KimiGrammar:
    def __init__(self, inner: CompiledGrammar, marks: ChannelTokens, tokenizer: GrammarTokenizer) -> None:
        self._inner = inner
        self._marks = marks
        self._stops = tokenizer.stop_token_ids

    @property
    def size_bytes(self) -> int:
        return self._inner.size_bytes

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        text = self._inner.matcher([self._marks.last], max_rollback_tokens)
        return KimiMatcher(text, self._marks, tuple(stop_token_ids or self._stops))


class KimiMatcher(Layer):
    """`matcher` is of the channel's text, which ends with the first token of the mark behind it."""

    def __init__(self, matcher: Matcher, marks: ChannelTokens, stops: tuple[int, ...]) -> None:
        super().__init__(matcher)
        self._marks = marks
        self._behind = (*marks.tail, *marks.end)
        self._stops = stops
        self._taken = [0, 0, 0, 0]
        """Tokens of the head, of the text, behind it, and stop tokens."""

    @property
    def names_tokens(self) -> bool:
        return True

    @property
    def is_filled(self) -> bool:
        return self._listed() is not None

    def accept(self, token: int) -> bool:
        listed = self._listed()
        if listed is None and (self._may_begin() and token == self._marks.head[0]):
            self._taken[0] += 1
        elif listed is None:
            if not self._matcher.accept(token):
                return False
            self._taken[1] += 1
        elif token not in listed:
            return False
        else:
            self._taken[0 if self._is_in_head() else 3 if token in self._stops else 2] += 1
        return True

    def rollback(self, n: int) -> None:
        if not 0 <= n <= sum(self._taken):
            raise ValueError(f"cannot take back {n} of {sum(self._taken)} tokens")
        for part in reversed(range(len(self._taken))):
            back = min(n, self._taken[part])
            if part == 1:
                self._matcher.rollback(back)
            self._taken[part] -= back
            n -= back

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        if (listed := self._listed()) is None:
            super().fill(bitmask, row)
            return
        bitmask[row].zero_()
        _allow(bitmask, row, listed)

    def bound(self, bitmask: torch.Tensor, row: int) -> None:
        if self._may_begin():
            _allow(bitmask, row, self._marks.head[:1])

    def forced_bytes(self) -> bytes:
        if self._listed() is None:
            return b"" if self._may_begin() else self._matcher.forced_bytes()
        if self._is_in_head():
            return self._marks.text(self._marks.head[self._taken[0] :])
        return b"" if self._may_end() else self._marks.text(self._behind[self._taken[2] :])

    def is_terminated(self) -> bool:
        return self._taken[3] > 0

    def reset(self) -> None:
        self._matcher.reset()
        self._taken = [0, 0, 0, 0]

    def _listed(self) -> tuple[int, ...] | None:
        """The tokens that may come; None: the text goes on."""
        if self._is_in_head():
            return (self._marks.head[self._taken[0]],)
        if not self._matcher.is_terminated():
            return None
        if self.is_terminated():
            return ()
        return (*self._behind[self._taken[2] :][:1], *(self._stops if self._may_end() else ()))

    def _may_begin(self) -> bool:
        return not any(self._taken)

    def _is_in_head(self) -> bool:
        return 0 < self._taken[0] < len(self._marks.head)

    def _may_end(self) -> bool:
        return self._taken[2] in (len(self._marks.tail), len(self._behind))


def _allow(bitmask: torch.Tensor, row: int, tokens: Sequence[int]) -> None:
    for token in tokens:
        word, bit = divmod(token, 32)
        bitmask[row, word] |= 1 << bit if bit < 31 else -(1 << 31)
