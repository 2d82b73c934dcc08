"""Grammars that requests wish for, loaded in the process that scores texts, and what its tokenizer makes of those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import torch

from grammar_service.backends import CompiledGrammar, Matcher
from grammar_service.backends.layer import Layer
from grammar_service.backends.mask_budget import Effort
from grammar_service.canonical.automaton import CanonicalAutomaton
from grammar_service.messages import ReadyGrammar
from grammar_service.sandbox.background_thread import BackgroundThread
from grammar_service.vocabulary.source import TokenizerSource
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.errors import RewardFailed
from model_service.loaded_grammars import LoadedGrammar, LoadedGrammars, MatcherUse
from model_service.lookahead.rewards import Scoring, Sources
from model_service.lookahead.rewards.grammar import byte_tokens

LOADED_BYTES = 128 << 20


class WishedGrammars:
    """Of one model's tokens. `named`: the rewards that settings name. `thread`: where rewards are made and
    computed, tenants in turns: dictionaries may have to be read for each of them."""

    def __init__(self, tokenizer: TokenizerSource, named: Mapping[str, Scoring] = MappingProxyType({})) -> None:
        self.thread = BackgroundThread()
        self._tokenizer = GrammarTokenizer.load(tokenizer)
        self._grammars = LoadedGrammars(self._tokenizer, LOADED_BYTES)
        self._byte_tokens = byte_tokens(self._tokenizer.vocabulary)
        self._named = named

    def own_sequences(self) -> CanonicalAutomaton:
        """Takes seconds for a large vocabulary, once. Raises UnsupportedGrammar: they are not known."""
        return self._tokenizer.canonical

    def sources(self, wished: Sequence[ReadyGrammar], channel: str, tenant: str) -> Sources:
        """For a tenant's request that brings these grammars, which `channel` offers (`artifact_channel.fetch`)."""

        def grammar(number: int) -> CompiledGrammar:
            return _Measured(self._grammars.get(wished[number].key, channel, tenant))

        return Sources(grammar, self._byte_tokens, self._named, partial(self.thread.run, tenant))


class _Measured:
    """A CompiledGrammar whose matchers are charged for. They raise RewardFailed where they take too much."""

    def __init__(self, grammar: LoadedGrammar) -> None:
        self._grammar = grammar
        self.size_bytes = grammar.size_bytes

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        effort = Effort()
        matcher = _MeasuredMatcher(self._grammar, self._grammar.matcher(stop_token_ids, max_rollback_tokens))
        self._grammar.charge(*effort.spent())
        return matcher


class _MeasuredMatcher(Layer):
    """For texts that are accepted and scored, and never masked."""

    def __init__(self, grammar: LoadedGrammar, matcher: Matcher) -> None:
        super().__init__(matcher)
        self._use = MatcherUse(grammar, matcher)

    def accept(self, token: int) -> bool:
        if not self._use.must_end():
            effort = Effort()
            accepted = self.inner.accept(token)
            if not self._use.charge(*effort.spent()):
                return accepted
        raise RewardFailed("a grammar that is wished for takes too much memory or time")

    def rollback(self, n: int) -> None:
        self.inner.rollback(n)

    def bound(self, bitmask: torch.Tensor, row: int) -> None:
        """Its masks are the other matcher's."""

    def reset(self) -> None:
        self.inner.reset()
