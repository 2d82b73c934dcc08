"""The automata of one constraint over a vocabulary's tokens, and what they decide without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grammar_service.automata.cartesian_merge import cartesian_merge
from grammar_service.automata.coalescence import forced_paths, model_calls, single_states, tokenizations
from grammar_service.automata.minimal import minimal
from grammar_service.automata.token_index import TokenIndex
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.backends.language import language_of
from grammar_service.errors import GrammarTooLarge, UnsupportedGrammar
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

ANY, CANONICAL = "any tokens", "the tokenizer's own"
MAX_NODES = 2_000_000
MOST_MINIMISED = 100_000
"""Edges of an automaton whose smallest one is looked for: a second or two."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Of an automaton over tokens. `fewest`: states of the smallest one of the same sequences, None where that is not looked for;
    `single`: states in which one token may come and the end may not; `longest`: the tokens of the longest
    of the `forced` paths through such states; `tokenizations`: sequences that it accepts, None where they never end; `calls`: length of
    a sequence, and how many of its tokens a model is asked for, of all sequences; None where there are too many, or no last one."""

    states: int
    edges: int
    fewest: int | None
    single: int
    forced: int
    longest: int
    tokenizations: int | None
    calls: frozenset[tuple[int, int]] | None

    @classmethod
    def of(cls, index: TokenIndex) -> Counts:
        paths = forced_paths(index)
        calls = model_calls(index)
        longest = max((len(path.tokens) for path in paths), default=0)
        single = len(single_states(index))
        every = None if calls is None else frozenset(calls)
        fewest = len(minimal(index)) if index.edges <= MOST_MINIMISED else None
        return cls(len(index), index.edges, fewest, single, len(paths), longest, tokenizations(index), every)


@dataclass(frozen=True, slots=True)
class Automata:
    """`byte_states` of the language; of its token sequences the automata by name, ANY first; `missing` says why there is none of the
    tokenizer's own sequences."""

    byte_states: int
    indexes: Mapping[str, TokenIndex]
    missing: str | None = None


def automata_of(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> Automata:
    """Raises UnsupportedGrammar: the spec is neither regex nor choice; GrammarError: it is at fault, or its automaton is too large."""
    language = language_of(spec)
    if language is None:
        raise UnsupportedGrammar(f"only a regex and a list of choices are automata as they are written, and this is of kind {spec.kind}")
    index = TokenIndex.of_language(language, TokenTrie(tokenizer.vocabulary))
    if not index.accepting.any():
        raise UnsupportedGrammar("no tokens of this vocabulary spell a text of it")
    try:
        canonical = tokenizer.canonical
        own = cartesian_merge(index, canonical, MAX_NODES)
    except (GrammarTooLarge, UnsupportedGrammar) as error:
        return Automata(len(language), {ANY: index}, error.message)
    return Automata(len(language), {ANY: index, CANONICAL: own})
