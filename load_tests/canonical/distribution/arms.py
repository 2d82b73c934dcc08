"""The three kinds of masks, as walks over the token sequences of a closed set of texts."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from grammar_service.automata.byte_dfa import of_choices
from grammar_service.automata.token_index import TokenIndex
from grammar_service.backends.canonical.product import product_of
from grammar_service.canonical.automaton import CanonicalAutomaton, State
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import BenchFailed

Place = TypeVar("Place", bound=Hashable)


class Mask(Protocol[Place]):
    """Which tokens may come; a place is what is kept of those that came."""

    @property
    def start(self) -> Place: ...

    def allowed(self, place: Place) -> list[tuple[int, Place]]:
        """Tokens and the places behind them; [] where there is none."""

    def may_starve(self, place: Place) -> bool:
        """Whether nothing may be left somewhere behind this place, so that another mask has to stand in."""


@dataclass(frozen=True)
class IndexMask:
    """What an automaton over tokens allows."""

    index: TokenIndex
    start: int = 0

    def allowed(self, place: int) -> list[tuple[int, int]]:
        tokens, targets = self.index.row(place)
        return [*zip(tokens.tolist(), targets.tolist(), strict=True)]

    def may_starve(self, place: int) -> bool:
        return False


RowPlace = tuple[int, State | None]
"""State of the index, and of the tokenizer's automaton; None from where nothing was left on."""


@dataclass(frozen=True)
class RowMask:
    """The grammar's mask and the tokenizer's row, step by step: nobody looks whether anything follows a token. Where nothing is left, the
    grammar's own mask holds from there on, since an answer has to end somehow."""

    index: TokenIndex
    tokenizer: CanonicalAutomaton

    @property
    def start(self) -> RowPlace:
        return 0, self.tokenizer.start

    def allowed(self, place: RowPlace) -> list[tuple[int, RowPlace]]:
        at, state = place
        plain = IndexMask(self.index).allowed(at)
        kept: list[tuple[int, RowPlace]] = []
        for token, target in plain:
            after = None if state is None else self.tokenizer.after(state, token)
            if after is not None:
                kept.append((token, (target, after)))
        return kept or [(token, (target, None)) for token, target in plain]

    def may_starve(self, place: RowPlace) -> bool:
        """Another one stands in from the first time on."""
        return place[1] is not None


@dataclass(frozen=True)
class Arms:
    """All three of one set of texts; `plain` has every token sequence of them."""

    plain: IndexMask
    row: RowMask
    canonical: IndexMask


def arms_of(texts: Sequence[str], tokenizer: GrammarTokenizer) -> Arms:
    """As the service would serve a choice among these texts with and without `"canonical": true`."""
    index = TokenIndex.of_language(of_choices(texts), tokenizer.trie)
    product = product_of(GrammarSpec(GrammarKind.CHOICE, json.dumps([*texts]), canonical=True), tokenizer)
    if product is None:
        raise BenchFailed("a choice among a few texts has no automaton")
    return Arms(IndexMask(index), RowMask(index, tokenizer.canonical), IndexMask(product))
