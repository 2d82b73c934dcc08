"""DirectMerge: an automaton over letters, rewritten merge by merge into one over tokens that accepts exactly the encodings of its texts
(Tran-Thien 2024, "Fast, High-Fidelity LLM Decoding with Regex Constraints", appendix, algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grammar_service.automata.merge_graph import MergeGraph
from grammar_service.errors import GrammarTooLarge

MAX_EDGES = 1_000_000
_BETWEEN_COUNTS = 64
"""Merges after which edges are counted."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Where `left` stands before `right`, `whole` takes the place of both."""

    left: int
    right: int
    whole: int


def direct_merge(graph: MergeGraph, merges: Iterable[Merge], max_edges: int = MAX_EDGES) -> MergeGraph:
    """Applies merges in the order of the table, each once, which is what an encoder does whose tables are trained: no merge comes before
    those that make its operands. The graph itself is changed. Raises GrammarTooLarge: it has more than `max_edges`."""
    done = 0
    for merge in merges:
        if not (graph.leaving(merge.left) and graph.leaving(merge.right)):
            continue
        if merge.left == merge.right:
            _merge_with_itself(graph, merge)
        else:
            for state in graph.entering(merge.left) & graph.leaving(merge.right):
                _merge_at(graph, state, merge)
        done += 1
        if done % _BETWEEN_COUNTS == 0 and graph.edges > max_edges:
            raise GrammarTooLarge(f"the automaton of all encodings has more than {max_edges} edges")
    graph.trim()
    return graph


def _merge_at(graph: MergeGraph, state: int, merge: Merge) -> None:
    """Whoever came by `left` and would go on by `right` takes `whole` past this state. It stays for those who came otherwise; those who go
    on otherwise need one that `right` does not leave."""
    if merge.right not in graph.after.get(state, {}) or merge.left not in graph.tokens_into(state):
        return
    target = graph.after[state][merge.right]
    sources = graph.before(state, merge.left)
    for source in sources:
        graph.add(source, merge.whole, target)
    # Texts may begin at the start: it is come to otherwise even where no other edge says so.
    comes_otherwise = state == graph.start or any(token != merge.left for token in graph.tokens_into(state))
    goes_otherwise = state in graph.accepting or any(token != merge.right for token in graph.after[state])
    if comes_otherwise and goes_otherwise:
        _split(graph, state, sources, merge)
    elif comes_otherwise:
        for source in sources:
            graph.drop(source, merge.left)
    elif goes_otherwise:
        graph.drop(state, merge.right)
    else:
        graph.remove(state)


def _split(graph: MergeGraph, state: int, sources: Iterable[int], merge: Merge) -> None:
    """`left` now leads to a copy that has all edges but `right`."""
    copy = graph.new_state(state in graph.accepting)
    onward = [(token, target) for token, target in graph.after[state].items() if token != merge.right]
    for source in sources:
        graph.drop(source, merge.left)
        graph.add(source, merge.left, copy)
    for token, target in onward:
        graph.add(copy, token, copy if token == merge.left and target == state else target)


def _merge_with_itself(graph: MergeGraph, merge: Merge) -> None:
    """Encoders pair equal tokens from the left, so that it matters how many stand before one: each state that such tokens may go through
    gets a twin for an odd number of them, and is left to even ones, none among them."""
    token = merge.left
    inner = graph.leaving(token) & graph.entering(token)
    twins = {state: graph.new_state(state in graph.accepting) for state in inner}
    for state, twin in twins.items():
        for other, target in [*graph.after[state].items()]:
            if other == token and target in twins:
                graph.drop(state, token)
                graph.add(state, token, twins[target])
            graph.add(twin, other, target)
    odd = set(twins.values())
    for state, twin in twins.items():
        for source in graph.before(state, token):
            if source not in inner and source not in odd:
                graph.drop(source, token)
                graph.add(source, token, twin)
    for twin in odd:
        _merge_at(graph, twin, merge)
    graph.trim()
