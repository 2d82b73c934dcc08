"""Automata of trees against Python's `re` on all short texts."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.automata.nfa import MAX_GROUP_DEPTH, Nfa
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.syntax import Concatenation, render
from tests.unit.grammar_service.regexes.random_trees import few_characters, trees

TEXTS = ["".join(chars) for length in range(5) for chars in product("ab\n", repeat=length)]


def accepted(tree: Concatenation, texts: list[str]) -> list[str]:
    nfa = Nfa()
    start = nfa.state()
    end = nfa.add(tree, start)
    return [text for text in texts if end in _reached(nfa, start, text)]


def _reached(nfa: Nfa, start: int, text: str) -> set[int]:
    states = _closure(nfa, {start})
    for char in text:
        steps = [step for state in states for step in nfa.steps[state]]
        states = _closure(nfa, {target for points, target in steps if any(low <= ord(char) <= high for low, high in points.ranges)})
    return states


def _closure(nfa: Nfa, states: set[int]) -> set[int]:
    waiting = list(states)
    while waiting:
        new = set(nfa.empty[waiting.pop()]) - states
        states |= new
        waiting += new
    return states


@settings(deadline=None)
@given(trees(few_characters))
def test_it_accepts_what_fullmatch_does(tree: Concatenation) -> None:
    regex = re.compile(render(tree))
    assert accepted(tree, TEXTS) == [text for text in TEXTS if regex.fullmatch(text)]


def _tree(pattern: str) -> Concatenation:
    return parse_regex(pattern, Dialect.ECMA).branches[0].body


def test_nesting_is_bounded_before_recursion_is_deep() -> None:
    assert accepted(_tree("(" * MAX_GROUP_DEPTH + "a" + ")" * MAX_GROUP_DEPTH), ["a", "b"]) == ["a"]
    with pytest.raises(UnsupportedGrammar, match="nested too deep"):
        accepted(_tree("(" * 20_000 + "a" + ")" * 20_000), [])


@pytest.mark.parametrize("pattern", ["a{999999999}", "(){999999999}", "(?:(?:(?:a{9}){9}){9}){9}"])
def test_copies_are_bounded(pattern: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="too large"):
        accepted(_tree(pattern), [])
