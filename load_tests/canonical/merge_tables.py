"""Merge tables and automata by chance, and encoders that are plainly right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from grammar_service.automata.direct_merge import Merge
from grammar_service.automata.merge_graph import MergeGraph

Pair = tuple[str, str]
Moves = list[dict[int, int]]


def trained(chance: Random, alphabet: str, most: int) -> list[Pair]:
    """The merges that training on a random text makes, in order; each makes another token."""
    parts = [chance.choice(alphabet) for _ in range(60)]
    merges: list[Pair] = []
    for _ in range(most):
        counts = Counter(pairwise(parts))
        known = {left + right for left, right in merges}
        fresh = {pair: count for pair, count in counts.items() if pair[0] + pair[1] not in known}
        if not fresh:
            break
        merges.append(chance.choice([pair for pair, count in fresh.items() if count == max(fresh.values())]))
        parts = applied(parts, merges[-1])
    return merges


def applied(parts: Sequence[str], merge: Pair) -> list[str]:
    """One merge, wherever it stands, from the left."""
    merged: list[str] = []
    at = 0
    while at < len(parts):
        if tuple(parts[at : at + 2]) == merge:
            merged.append(parts[at] + parts[at + 1])
            at += 2
        else:
            merged.append(parts[at])
            at += 1
    return merged


def encoded_by_table(text: str, merges: Sequence[Pair]) -> list[str]:
    """Each merge once, in the order of the table."""
    parts = [*text]
    for merge in merges:
        parts = applied(parts, merge)
    return parts


def encoded_by_rank(text: str, ranks: dict[Pair, int]) -> list[str]:
    """The merge of the least rank first, the leftmost of these."""
    parts = [*text]
    while found := [(ranks[pair], at) for at, pair in enumerate(pairwise(parts)) if pair in ranks]:
        _, at = min(found)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def encoded_by_sweeps(text: str, ranks: dict[Pair, int]) -> list[str]:
    """The merge of the least rank wherever it stands, again and again."""
    parts = [*text]
    while found := [pair for pair in pairwise(parts) if pair in ranks]:
        parts = applied(parts, min(found, key=lambda pair: ranks[pair]))
    return parts


def random_table(chance: Random) -> tuple[str, list[Pair]]:
    """An alphabet and a trained table, often with a letter that merges with itself first."""
    alphabet = "ab" if chance.random() < 0.6 else "abc"
    merges = trained(chance, alphabet, chance.randint(1, 7))
    if chance.random() < 0.3:
        merges = [("a", "a"), *(merge for merge in merges if merge != ("a", "a"))]
    known = set(alphabet)
    kept: list[Pair] = []
    for left, right in merges:
        if left in known and right in known and left + right not in known:
            kept.append((left, right))
            known.add(left + right)
    return alphabet, kept


def random_automaton(chance: Random, alphabet: str) -> tuple[Moves, set[int], int]:
    """Moves on code points, accepting states, and a start that edges may lead back to."""
    states = chance.randint(1, 5)
    moves = [{ord(letter): chance.randrange(states) for letter in alphabet if chance.random() < 0.7} for _ in range(states)]
    return moves, {state for state in range(states) if chance.random() < 0.5} or {0}, chance.randrange(states)


class Tokens:
    """Numbers of tokens: a letter's is its code point."""

    def __init__(self, alphabet: str, merges: Sequence[Pair]) -> None:
        self.texts = {ord(letter): letter for letter in alphabet}
        names = {letter: ord(letter) for letter in alphabet}
        self.merges: list[Merge] = []
        for left, right in merges:
            whole = names.setdefault(left + right, 1000 + len(names))
            self.texts[whole] = left + right
            self.merges.append(Merge(names[left], names[right], whole))


def words(
    moves: Moves | dict[int, dict[int, int]], accepting: set[int], start: int, texts: dict[int, str], most: int
) -> set[tuple[str, ...]]:
    """The accepted sequences of up to `most` letters."""
    return set(_words(moves, accepting, start, texts, most))


def _words(
    moves: Moves | dict[int, dict[int, int]], accepting: set[int], start: int, texts: dict[int, str], most: int
) -> Iterator[tuple[str, ...]]:
    waiting: list[tuple[int, tuple[str, ...], int]] = [(start, (), 0)]
    while waiting:
        state, sequence, length = waiting.pop()
        if state in accepting:
            yield sequence
        for token, target in moves[state].items():
            if length + len(texts[token]) <= most:
                waiting.append((target, (*sequence, texts[token]), length + len(texts[token])))


def copied(automaton: tuple[Moves, set[int], int]) -> MergeGraph:
    moves, accepting, start = automaton
    graph = MergeGraph(moves, accepting, start)
    graph.trim()
    return graph
