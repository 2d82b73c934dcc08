"""How much of a text a grammar accepts: a constraint that is wished for, not enforced."""

from __future__ import annotations

from collections.abc import Sequence

from grammar_service.backends import CompiledGrammar

ROLLBACK = 256
"""Bytes that a matcher takes back; where texts part earlier, it starts over."""


class GrammarShare:
    """Texts are walked byte by byte, so that what counts is the text and not how it was tokenized; what two texts in turn have in common
    is walked once. `byte_tokens`: the token of each single byte, None where the vocabulary has none: what comes from there on is not
    accepted."""

    def __init__(self, grammar: CompiledGrammar, byte_tokens: Sequence[int | None]) -> None:
        self._matcher = grammar.matcher(None, ROLLBACK)
        self._byte_tokens = byte_tokens
        self._walked = b""

    def score(self, texts: Sequence[str]) -> list[float]:
        """From 0 to 1: the part of its bytes that begin a text of the grammar; 1 for the empty text."""
        return [self._share(text.encode()) for text in texts]

    def _share(self, text: bytes) -> float:
        if not text:
            return 1.0
        self._return_to(text)
        for byte in text[len(self._walked) :]:
            token = self._byte_tokens[byte]
            if token is None or not self._matcher.accept(token):
                break
            self._walked += bytes((byte,))
        return len(self._walked) / len(text)

    def _return_to(self, text: bytes) -> None:
        """Back to where both texts are still the same."""
        common = next((n for n, (a, b) in enumerate(zip(self._walked, text, strict=False)) if a != b), min(len(self._walked), len(text)))
        back = len(self._walked) - common
        if back > ROLLBACK:
            self._matcher.reset()
            common = 0
        elif back:
            self._matcher.rollback(back)
        self._walked = self._walked[:common]


def byte_tokens(vocabulary: Sequence[bytes]) -> list[int | None]:
    """The first token of each of the 256 single bytes, by byte."""
    found: list[int | None] = [None] * 256
    for token, spelled in enumerate(vocabulary):
        if len(spelled) == 1 and found[spelled[0]] is None:
            found[spelled[0]] = token
    return found
