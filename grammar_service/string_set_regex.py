"""A set of strings as a regex: states are eliminated one by one (Brzozowski and McCluskey)."""

from __future__ import annotations

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regex import render
from grammar_service.regex_classes import LAST, CodePoints
from grammar_service.string_set import Moves, StringSet

MAX_TEXT = 8000
"""Characters of the written regex."""
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
    for state in sorted(range(len(strings.moves)), key=lambda state: _degree(edges, state)):
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
    return {target: render(chosen) for target, chosen in shown.items() if chosen.ranges}


def _degree(edges: _Edges, state: int) -> int:
    return sum(source == state for source, _ in edges) * sum(target == state for _, target in edges)


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
