"""Grammars that requests wish for, loaded in the process that scores texts, and what its tokenizer makes of those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from grammar_service.canonical.automaton import CanonicalAutomaton
from grammar_service.messages import ReadyGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.loaded_grammars import LoadedGrammars
from model_service.lookahead.rewards import Scoring, Sources
from model_service.lookahead.rewards.grammar import byte_tokens

LOADED_BYTES = 128 << 20


class WishedGrammars:
    """Of the tokens of one `model`, a folder or a name. `named`: the rewards that settings name."""

    def __init__(self, model: str, named: Mapping[str, Scoring] = MappingProxyType({})) -> None:
        self._tokenizer = GrammarTokenizer.load(model)
        self._grammars = LoadedGrammars(self._tokenizer, LOADED_BYTES)
        self._byte_tokens = byte_tokens(self._tokenizer.vocabulary)
        self._named = named

    def own_sequences(self) -> CanonicalAutomaton:
        """Takes seconds for a large vocabulary, once. Raises UnsupportedGrammar: they are not known."""
        return self._tokenizer.canonical

    def sources(self, wished: Sequence[ReadyGrammar], channel: str) -> Sources:
        """For a request that brings these grammars, which `channel` offers (`artifact_channel.fetch`)."""
        return Sources(lambda number: self._grammars.get(wished[number].key, channel), self._byte_tokens, self._named)
