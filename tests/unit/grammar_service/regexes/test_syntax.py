"""Trees and their texts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.errors import GrammarError
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.regex import parse_regex
from grammar_service.regexes.syntax import Branch, Concatenation, Regex, render
from tests.unit.grammar_service.regexes.random_trees import trees, wide_characters


@given(st.lists(trees(wide_characters), min_size=1, max_size=3), st.sampled_from(Dialect))
def test_a_rendered_tree_is_parsed_to_the_same_tree(bodies: list[Concatenation], dialect: Dialect) -> None:
    tree = Regex(tuple(Branch(body, start=False, end=False) for body in bodies))
    assert parse_regex(tree.full_match(), dialect) == tree


@settings(max_examples=300)
@given(st.text(alphabet="ab()[]|*+?{}^$\\.-,é!dDwWsSxu0123\n", max_size=16), st.sampled_from(Dialect))
def test_rendering_what_was_parsed_is_stable(pattern: str, dialect: Dialect) -> None:
    try:
        parsed = parse_regex(pattern, dialect)
    except GrammarError:
        return
    if parsed.asserts:
        return
    once = parsed.full_match()
    assert parse_regex(once, dialect).full_match() == once
    for branch in parsed.branches:
        assert parse_regex(render(branch.body), dialect).branches[0].body == branch.body


def test_a_quantifier_stays_as_it_was_spelt() -> None:
    assert parse_regex("a{01}b{1,1}c{0,}d*?(e)", Dialect.ECMA).full_match() == "a{01}b{1,1}c{0,}d*(?:e)"


def test_only_ascii_digits_are_counts() -> None:
    assert parse_regex("a{٣}", Dialect.PYTHON_ASCII).full_match() == r"a\{٣\}"


def test_anchors_stand_where_the_pattern_has_them() -> None:
    assert parse_regex("^a|b$|c", Dialect.ECMA).anchored() == "^(?:a)|(?:b)$|(?:c)"


def test_groups_as_deep_as_texts_are_long_are_rendered() -> None:
    depth = 20_000
    assert parse_regex("(" * depth + "a" + ")" * depth, Dialect.ECMA).full_match() == "(?:" * depth + "a" + ")" * depth
