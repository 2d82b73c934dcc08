"""The exact grammar of a regex or a choice: an automaton over tokens that accepts the tokenizer's own sequences of its texts, trimmed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from grammar_service.automata.cartesian_merge import cartesian_merge
from grammar_service.automata.token_index import TokenIndex
from grammar_service.backends.language import language_of
from grammar_service.backends.state_matcher import StateMatcher
from grammar_service.errors import ArtifactError, GrammarTooLarge, UnsupportedGrammar
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_MOST_FORCED = 1024
"""Tokens that are looked for at a time: of what ends nowhere there is no last one."""
MOST_EDGES, MOST_NODES, MOST_EFFORT = 300_000, 50_000, 500_000
"""Of the index of texts and of the product, and steps for a regex: beyond them, well within a second, there is none."""


class _Payload(msgspec.Struct, frozen=True, array_like=True):
    """`rules`: the digest of the tokenizer's own; the rest as in `TokenIndex`, little-endian."""

    rules: str
    starts: bytes
    tokens: bytes
    targets: bytes
    accepting: bytes


_PAYLOAD = msgspec.msgpack.Decoder(_Payload)


def product_of(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> TokenIndex | None:
    """The product of a regex or a choice; None for other specs, and where it is too large, as of texts that are mostly free."""
    try:
        if (language := language_of(spec, MOST_EFFORT)) is None:
            return None
        canonical = tokenizer.canonical
        product = cartesian_merge(TokenIndex.of_language(language, canonical.trie, MOST_EDGES), canonical, MOST_NODES)
    except (GrammarTooLarge, UnsupportedGrammar):
        return None
    return product if product.accepting.any() else None


def payload_of(index: TokenIndex, tokenizer: GrammarTokenizer) -> bytes:
    """For another process; the tokenizer's merges are part of the grammar, and its vocabulary does not tell them."""
    arrays = (index.starts.astype("<i8"), index.tokens.astype("<i4"), index.targets.astype("<i4"), index.accepting.astype("u1"))
    return msgspec.msgpack.encode(_Payload(tokenizer.canonical.digest, *(array.tobytes() for array in arrays)))


def read(payload: bytes | memoryview, tokenizer: GrammarTokenizer) -> ProductGrammar:
    """Raises ArtifactError: none of ours, or of a tokenizer with other rules."""
    try:
        held = _PAYLOAD.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the automaton cannot be read: {error}") from None
    if held.rules != tokenizer.canonical.digest:
        raise ArtifactError("the automaton is of a tokenizer with the same vocabulary and other merges")
    index = TokenIndex(
        np.frombuffer(held.starts, "<i8"),
        np.frombuffer(held.tokens, "<i4"),
        np.frombuffer(held.targets, "<i4"),
        np.frombuffer(held.accepting, "u1").astype(bool),
    )
    return ProductGrammar(index, tokenizer)


class ProductGrammar:
    """A CompiledGrammar. No state of its automaton is a dead end, so that whatever a mask allows leads to an end."""

    def __init__(self, index: TokenIndex, tokenizer: GrammarTokenizer) -> None:
        self._index = index
        self._vocabulary = tokenizer.vocabulary
        self._stop_ids = tokenizer.stop_token_ids

    @property
    def size_bytes(self) -> int:
        return 8 * (self._index.edges + len(self._index))

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> ProductMatcher:
        return ProductMatcher(self._index, self._vocabulary, self._stop_ids if stop_token_ids is None else stop_token_ids)


class ProductMatcher(StateMatcher):
    """A Matcher: a place in the automaton, and how it was come to."""

    def __init__(self, index: TokenIndex, vocabulary: Sequence[bytes], stop_token_ids: Sequence[int]) -> None:
        super().__init__(stop_token_ids)
        self._index = index
        self._vocabulary = vocabulary

    def _after(self, state: int, token: int) -> int | None:
        return self._index.after(state, token)

    def _may_end(self, state: int) -> bool:
        return bool(self._index.accepting[state])

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        mask: npt.NDArray[np.int32] = bitmask.numpy()[row]
        mask[:] = 0
        if self._has_ended:
            return
        tokens, ends = self._index.row(self._state)[0], self._may_end(self._state)
        words = mask.view(np.uint32)
        np.bitwise_or.at(words, tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32))
        for token in self._stops:
            bit = np.uint32(1 << (token & 31))
            words[token >> 5] = words[token >> 5] | bit if ends else words[token >> 5] & ~bit

    def forced_bytes(self) -> bytes:
        return b"".join(self._vocabulary[token] for token in self.forced(_MOST_FORCED)[0])

    def forced(self, most: int) -> tuple[tuple[int, ...], bool]:
        """The only tokens that every text goes on with, up to so many, and whether nothing but the end follows them."""
        tokens: list[int] = []
        at = self._state
        while not self._has_ended and len(tokens) < most:
            row, targets = self._index.row(at)
            if self._may_end(at) or len(row) != 1 or int(row[0]) in self._stops:
                break
            tokens.append(int(row[0]))
            at = int(targets[0])
        ends = not self._has_ended and self._may_end(at) and not len(self._index.row(at)[0])
        return tuple(tokens), ends
