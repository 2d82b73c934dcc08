"""Random trees of regexes over few characters."""

from __future__ import annotations

from hypothesis import strategies as st

from grammar_service.regexes.classes import CodePoints
from grammar_service.regexes.syntax import Alternation, Characters, Concatenation, Node, Repetition

_QUANTIFIERS: list[tuple[int, int | None, str]] = [
    (0, None, "*"),
    (1, None, "+"),
    (0, 1, "?"),
    (0, 0, "{0}"),
    (2, 2, "{2}"),
    (0, 2, "{0,2}"),
    (1, 2, "{1,2}"),
    (2, None, "{2,}"),
]

_ranges = st.tuples(st.integers(0, 0xD7FF), st.integers(0, 60)).map(lambda pair: (pair[0], min(sum(pair), 0xD7FF)))
wide_characters = (
    st.lists(_ranges, min_size=1, max_size=3).map(CodePoints.of).filter(lambda points: points.ranges != ((0, 0),)).map(Characters)
)
"""Any code points below the surrogates."""
_few = st.sampled_from([[(0x61, 0x61)], [(0x62, 0x62)], [(0x0A, 0x0A)], [(0x61, 0x62)], [(0, 0x61)], [(0x62, 0xD7FF), (0xE000, 0x10FFFF)]])
few_characters = _few.map(CodePoints.of).map(Characters)
"""Classes that tell apart `a`, `b` and a line break."""


def trees(characters: st.SearchStrategy[Characters]) -> st.SearchStrategy[Concatenation]:
    groups = st.recursive(characters, _larger, max_leaves=5)
    return _concatenations(groups)


def _concatenations(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Concatenation]:
    return st.lists(parts, max_size=3).map(lambda some: Concatenation(tuple(some)))


def _larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    group = st.lists(_concatenations(inner), min_size=1, max_size=3).map(lambda branches: Alternation(tuple(branches)))
    repeatable = st.one_of(group, inner.filter(lambda node: not isinstance(node, Repetition)))
    return st.one_of(group, st.builds(lambda node, counts: Repetition(node, *counts), repeatable, st.sampled_from(_QUANTIFIERS)))
