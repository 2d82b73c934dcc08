"""Distributions over a closed set of texts, computed by walking all token sequences that matter; nothing is drawn.

A walk is a generator: it yields the sequences behind which it needs the next token's probabilities, and goes on when a tree has them. So
several walks over one context go on level by level, and each level is one pass of the model.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from grammar_service.automata.token_index import TokenIndex
from load_tests.canonical.distribution.arms import Mask
from load_tests.canonical.distribution.token_tree import Floats, Tokens

Place = TypeVar("Place", bound=Hashable)
Walk = Generator[list[Tokens], None, "Walked"]
Name = TypeVar("Name", bound=Hashable)


class Reader(Protocol):
    """What a `TokenTree` does."""

    def __getitem__(self, sequence: Tokens) -> Floats: ...

    def read(self, sequences: Iterable[Tokens]) -> None: ...


@dataclass(slots=True)
class Walked:
    """`mass` float64 [texts]: what came to each. `pruned`: what was given up on the way, and so came to none. `starved`: what had to go by
    another mask from some place on."""

    mass: Floats
    pruned: float = 0.0
    starved: float = 0.0

    @property
    def shares(self) -> Floats:
        whole: Floats = self.mass / self.mass.sum()
        return whole


def conditional(tree: Reader, index: TokenIndex, texts: Sequence[bytes], vocabulary: Sequence[bytes], least: float) -> Walk:
    """The model's own mass of each text: that of all its token sequences together. One is given up where less than `least` is left of it;
    `pruned` bounds what that takes from all texts together. No text may begin with another one."""
    found = Walked(np.zeros(len(texts)))
    front: dict[Tokens, tuple[float, int, bytes]] = {(): (1.0, 0, b"")}
    while front:
        yield [*front]
        following: dict[Tokens, tuple[float, int, bytes]] = {}
        for sequence, (mass, place, text) in front.items():
            behind = tree[sequence]
            for token, target in zip(*(column.tolist() for column in index.row(place)), strict=True):
                longer, left = text + vocabulary[token], mass * float(behind[token])
                if longer in texts:
                    found.mass[texts.index(longer)] += left
                elif left < least:
                    found.pruned += left
                else:
                    following[*sequence, token] = left, target, longer
        front = following
    return found


def masked(tree: Reader, mask: Mask[Place], texts: Sequence[bytes], vocabulary: Sequence[bytes], least: float) -> Walk:
    """The share of each text if every token is drawn from what a mask leaves. A sequence that only one text begins with is that text's,
    whatever follows, since each goes on to an end; it is followed on where it may starve. What has come to less than `least` is not."""
    found = Walked(np.zeros(len(texts)))
    front: dict[Tokens, tuple[float, Place, bytes]] = {(): (1.0, mask.start, b"")}
    while front:
        yield [*front]
        following: dict[Tokens, tuple[float, Place, bytes]] = {}
        for sequence, (share, place, text) in front.items():
            behind, ways = tree[sequence], mask.allowed(place)
            whole = sum(float(behind[token]) for token, _ in ways)
            if mask.may_starve(place) and not mask.may_starve(ways[0][1]):
                found.starved += share
            for token, target in ways:
                longer, left = text + vocabulary[token], share * float(behind[token]) / whole
                possible = [number for number, one in enumerate(texts) if one.startswith(longer)]
                is_followed = left >= least and longer not in texts
                if len(possible) == 1 and not (is_followed and mask.may_starve(target)):
                    found.mass[possible[0]] += left
                elif is_followed:
                    following[*sequence, token] = left, target, longer
                else:
                    found.pruned += left
        front = following
    return found


def along(tree: Reader, sequences: Sequence[Tokens]) -> Floats:
    """The probability of each whole sequence."""
    tree.read(sequence[:-1] for sequence in sequences)
    return np.array([np.prod([tree[sequence[:at]][token] for at, token in enumerate(sequence)]) for sequence in sequences])


def run(tree: Reader, walks: Mapping[Name, Walk]) -> dict[Name, Walked]:
    """All of them to their ends, side by side."""
    found: dict[Name, Walked] = {}
    open_walks = dict(walks)
    while open_walks:
        wanted: list[Tokens] = []
        for name, walk in [*open_walks.items()]:
            try:
                wanted += next(walk)
            except StopIteration as end:
                found[name] = end.value
                del open_walks[name]
        tree.read(wanted)
    return found
