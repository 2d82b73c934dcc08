"""A set of strings as a regex: states are eliminated one by one (Brzozowski and McCluskey)."""

from __future__ import annotations

from collections import Counter

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.automata.subsets import Moves
from grammar_service.regexes.classes import LAST, CodePoints
from grammar_service.regexes.rendering import character_class
from grammar_service.regexes.string_set import StringSet

MAX_TEXT = 8000
"""Characters of the rendered regex: llguidance takes 24 ms to load one of 5,000, 0.6 s for 80,000."""
_START, _END = -1, -2
_Edges = dict[tuple[int, int], str]


def anchored_pattern(strings: StringSet) -> str:
    """A JSON Schema `pattern` that matches exactly the strings of the set.

    Raises UnsupportedGrammar: the set is empty, or its regex would be longer than MAX_TEXT.
    """
    if strings.is_everything:
        return ""
    edges: _Edges = {(_START, 0): ""}
    for state, moves in enumerate(strings.moves):
        edges.update({(state, target): text for target, text in _classes(moves).items()})
    edges.update({(state, _END): "" for state in strings.accepting})
    waiting = set(range(len(strings.moves)))
    while waiting:
        strings.effort.spend(len(waiting) + len(edges))
        counts = _weights(edges)
        state = min(waiting, key=lambda state: (counts[state], state))
        waiting.remove(state)
        _eliminate(edges, state)
    if (_START, _END) not in edges:
        raise UnsupportedGrammar("no string matches")
    return f"^(?:{edges[_START, _END]})$"


def _classes(moves: Moves) -> dict[int, str]:
    ranges: dict[int, list[tuple[int, int]]] = {}
    for index, (low, target) in enumerate(moves):
        high = moves[index + 1][0] - 1 if index + 1 < len(moves) else LAST
        ranges.setdefault(target, []).append((low, high))
    shown = {target: CodePoints.of(chosen).minus_surrogates() for target, chosen in ranges.items()}
    return {target: character_class(chosen) for target, chosen in shown.items() if chosen.ranges}


def _weights(edges: _Edges) -> dict[int, int]:
    """For each state about how much text it takes to go around it."""
    into: Counter[int] = Counter()
    out: Counter[int] = Counter()
    text: Counter[int] = Counter()
    for (source, target), label in edges.items():
        text.update({source: len(label), target: len(label)})
        if source != target:
            out[source] += 1
            into[target] += 1
    return {state: into[state] * out[state] * (10 + text[state]) for state in text | into | out}


def _eliminate(edges: _Edges, state: int) -> None:
    loop = edges.pop((state, state), None)
    again = "" if loop is None else f"(?:{loop})*"
    sources = [(source, edges.pop((source, target))) for source, target in list(edges) if target == state]
    targets = [(target, edges.pop((source, target))) for source, target in list(edges) if source == state]
    for source, before in sources:
        for target, after in targets:
            text = _grouped(before) + again + _grouped(after)
            known = edges.get((source, target))
            edges[source, target] = text if known is None else _either(known, text)
            if len(edges[source, target]) > MAX_TEXT:
                raise UnsupportedGrammar("these patterns are too large to be combined")


def _either(left: str, right: str) -> str:
    if not left or not right:
        return f"(?:{left or right})?"
    return f"{left}|{right}"


def _grouped(text: str) -> str:
    return f"(?:{text})" if "|" in text else text
