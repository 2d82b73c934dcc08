"""Automata over tokens, drawn."""

from __future__ import annotations

import pytest

from deployments.commands.grammar.automaton import ANY, CANONICAL, Automata
from deployments.commands.grammar.graphviz import graphviz
from deployments.commands.grammar.panels import MOST_STATES, Panel, panels_of
from grammar_service.automata.token_index import TokenIndex
from grammar_service.errors import GrammarTooLarge

VOCABULARY = [b"a", b" b", b'"\\', b"\n", b"\xff", b"ab", b"a" * 40, b"c"]
LADDER = TokenIndex.of_moves([{0: 1, 1: 2, 5: 3}, {2: 2, 3: 4}, {4: 3, 7: 4}, {0: 4}, {}], [False] * 4 + [True])


def drawn(index: TokenIndex) -> Panel:
    return panels_of(Automata(1, {ANY: index}), VOCABULARY)[0]


def chain(length: int) -> TokenIndex:
    return TokenIndex.of_moves([*({0: state + 1} for state in range(length)), {}], [False] * length + [True])


def test_graphviz_text_has_a_cluster_for_each_automaton_and_the_last_one_compressed() -> None:
    text = graphviz(panels_of(Automata(3, {ANY: LADDER, CANONICAL: chain(2)}), VOCABULARY))
    assert text.count("subgraph cluster_") == 3
    assert 'label="any tokens: 5 states, 8 edges"' in text
    assert 'a1_0 [label="0", style=filled, fillcolor="#deebf7"];' in text
    assert 'a1_2 [label="2", shape=doublecircle];' in text
    assert '    a2_0 -> a2_2 [label="aa"];' in text, "both tokens in one"


def test_labels_show_what_cannot_be_seen_and_are_quoted() -> None:
    text = graphviz([drawn(LADDER)])
    for label in ("␣b", r"\"\\", r"\\n", r"\\xff"):
        assert f'[label="{label}"]' in text


def test_tokens_between_the_same_states_share_an_edge() -> None:
    index = TokenIndex.of_moves([dict.fromkeys(range(len(VOCABULARY)), 1), {}], [False, True])
    assert [edge.label for edge in drawn(index).edges] == [r'a  ␣b  "\  +5']


def test_long_texts_are_cut() -> None:
    (edge,) = drawn(TokenIndex.of_moves([{6: 1}, {}], [False, True])).edges
    assert edge.label == "a" * 23 + "…"


def test_what_is_too_large_to_be_read_is_left_out() -> None:
    large = chain(MOST_STATES)
    assert [panel.title for panel in panels_of(Automata(1, {ANY: large, CANONICAL: chain(1)}), VOCABULARY)] == [
        "the tokenizer's own: 2 states, 1 edges",
        "what is decided, run together: 2 states, 1 edges",
    ]
    with pytest.raises(GrammarTooLarge, match="nothing is drawn"):
        panels_of(Automata(1, {ANY: large}), VOCABULARY)
