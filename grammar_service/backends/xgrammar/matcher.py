"""Grammars and matchers of xgrammar, as the protocol has them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import xgrammar

from grammar_service.backends.bounded_whitespace import BoundedWhitespace
from grammar_service.backends.guarded import Guarded
from grammar_service.backends.protocol import Matcher
from grammar_service.backends.xgrammar.recipe import Recipe
from grammar_service.backends.xgrammar.runs import ForcedSearch
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_MOST_CHECKED = 256
"""Bytes of a forced text, each of which takes a mask to check. What is behind them is found later."""


class XgrammarGrammar:
    """`recipe` is what it was compiled of. Where `recursion_tail` is None, its matchers tell of no forced bytes."""

    def __init__(self, compiled: xgrammar.CompiledGrammar, tokenizer: GrammarTokenizer, recipe: Recipe, recursion_tail: int | None) -> None:
        self._compiled = compiled
        self._search = ForcedSearch(recursion_tail)
        self._tokenizer = tokenizer
        self._spaces = tokenizer.spaces if recipe.is_bounded else None
        self._plan = recipe.plan
        self._names_tokens = recipe.names_tokens

    @property
    def size_bytes(self) -> int:
        return int(self._compiled.memory_size_bytes)

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        stops = list(stop_token_ids) if stop_token_ids is not None else None
        matcher = xgrammar.GrammarMatcher(self._compiled, override_stop_tokens=stops)
        own = self._tokenizer.stop_token_ids
        refused = frozenset(own) - frozenset(own if stops is None else stops)
        plain: Matcher = XgrammarMatcher(matcher, refused, self._tokenizer, self._search, self._names_tokens)
        bounded = plain if self._spaces is None else BoundedWhitespace(plain, self._spaces)
        return bounded if self._plan is None else Guarded(bounded, self._plan.guard(self._tokenizer.names))


class XgrammarMatcher:
    """Takes back any number of tokens: the library keeps the whole history. `refused` are the tokenizer's stop tokens that do not
    stop this request: they have no text, and the library would accept them anywhere. `names_tokens`: the grammar has special tokens."""

    def __init__(
        self,
        matcher: xgrammar.GrammarMatcher,
        refused: frozenset[int],
        tokenizer: GrammarTokenizer,
        search: ForcedSearch,
        names_tokens: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._names_tokens = names_tokens
        self._matcher = matcher
        self._search = search
        self._refused = refused
        self._vocabulary = tokenizer.vocabulary
        self._last_word, used = divmod(tokenizer.vocab_size, 32)
        self._last_bits = (1 << used) - 1
        self._lengths = [0]
        """Of the text after each token, in bytes."""

    @property
    def library(self) -> xgrammar.GrammarMatcher:
        """Whose own masks allow ids past the vocabulary as well."""
        return self._matcher

    @property
    def names_tokens(self) -> bool:
        return self._names_tokens

    def accept(self, token: int) -> bool:
        if not self._advance(token):
            return False
        self._lengths.append(self._lengths[-1] + len(self._vocabulary[token]))
        return True

    def rollback(self, n: int) -> None:
        if not 0 <= n < len(self._lengths):
            raise ValueError(f"cannot take back {n} of {len(self._lengths) - 1} tokens")
        if n:
            self._matcher.rollback(n)
            del self._lengths[-n:]

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        if self._matcher.is_terminated():
            bitmask[row].zero_()
            return
        self._matcher.fill_next_token_bitmask(bitmask, row)
        self.mend(bitmask, row)
        if self._last_bits:
            # The library leaves the bits past the vocabulary set.
            bitmask[row, self._last_word] &= self._last_bits

    def mend(self, bitmask: torch.Tensor, row: int) -> None:
        """Forbid the refused tokens, which the library's mask may allow."""
        for token in self._refused:
            bitmask[row, token // 32] &= ~(1 << token % 32) if token % 32 < 31 else (1 << 31) - 1

    def forced_bytes(self) -> bytes:
        if not self._search.is_allowed(self._lengths[-1]) or self._matcher.is_terminated():
            return b""
        try:
            forced = self._matcher.find_jump_forward_string().encode("utf-8")
        except UnicodeDecodeError as error:
            # The library makes a string of what may end inside a character.
            forced = error.object
        self._search.found(len(forced))
        return self._until_special_token(forced[:_MOST_CHECKED]) if forced and self._names_tokens else forced

    def _until_special_token(self, forced: bytes) -> bytes:
        """The part of a forced text in which no special token may come: the library looks at text alone."""
        mask = torch.zeros(1, (self._tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
        row, taken = mask[0].numpy(), 0
        for byte in forced:
            token = self._tokenizer.byte_tokens.get(byte)
            self.fill(mask, 0)
            if token is None or (row & self._tokenizer.special_row).any() or not self.accept(token):
                break
            taken += 1
        self.rollback(taken)
        return forced[:taken]

    def is_terminated(self) -> bool:
        return bool(self._matcher.is_terminated())

    def reset(self) -> None:
        self._matcher.reset()
        self._lengths = [0]

    def _advance(self, token: int) -> bool:
        return not self._matcher.is_terminated() and token not in self._refused and bool(self._matcher.accept_token(token))
