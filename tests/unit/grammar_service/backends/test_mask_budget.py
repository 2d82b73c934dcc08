"""Grammars whose masks take long are refused where they are compiled."""

from __future__ import annotations

import json

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import backend_named
from grammar_service.backends.mask_budget import (
    MAX_SLOW_MASKS,
    MAX_SLOW_S,
    MAX_STALL_S,
    SEARCH_RESERVE_S,
    SEARCH_S,
    SLOW_MASK_S,
    MaskTimeBudget,
    SearchBudget,
)
from grammar_service.backends.selection import select_backend
from grammar_service.errors import GrammarTooLarge
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

TOKENIZER = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
AMBIGUOUS = 'e "#"\ne ::= e e | l\nl ::= [a-z] | "(" l ")"'


@pytest.mark.parametrize("root", [AMBIGUOUS, f'"{"so be it " * 3}" {AMBIGUOUS}'], ids=["at once", "behind what is forced"])
def test_an_ambiguous_grammar_that_xgrammar_takes_long_for_is_refused(root: str) -> None:
    tag = json.dumps({"type": "structural_tag", "format": {"type": "grammar", "grammar": f"root ::= {root}"}})
    for spec in (GrammarSpec(GrammarKind.EBNF, f"root ::= {root}"), GrammarSpec(GrammarKind.STRUCTURAL_TAG, tag)):
        with pytest.raises(GrammarTooLarge, match="ambiguous"):
            backend_named("xgrammar").compile(spec, TOKENIZER)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (GrammarKind.EBNF, 'root ::= e\ne ::= e ("+" | "*") e | "(" e ")" | [0-9]+'),
        (GrammarKind.EBNF, 'root ::= ([a-z]+ " ")* "."'),
        (GrammarKind.LARK, "start: e\ne: e OPERATOR e | NUMBER\nOPERATOR: /[+*]/\nNUMBER: /[0-9]+/"),
        (GrammarKind.REGEX, "([a-z]|[a-z][a-z])*#"),
    ],
)
def test_what_people_write_is_not(kind: GrammarKind, text: str) -> None:
    spec = GrammarSpec(kind, text)
    assert select_backend(spec).compile(spec, TOKENIZER).data


def test_one_slow_mask_may_be_the_machines_fault_and_many_quick_ones_are_none() -> None:
    budget = MaskTimeBudget()
    assert not any(budget.spend(SLOW_MASK_S) for _ in range(1000))
    assert [budget.spend(MAX_SLOW_S) for _ in range(MAX_SLOW_MASKS)] == [False, False, True]


def test_one_that_takes_too_long_for_any_machine_is_enough() -> None:
    assert not MaskTimeBudget().spend(MAX_STALL_S)
    assert MaskTimeBudget().spend(2 * MAX_STALL_S)


def test_searches_that_find_nothing_may_go_on_as_long_as_they_are_quick() -> None:
    quick, slow = SearchBudget(), SearchBudget()
    for _ in range(1000):
        quick.spend(SEARCH_S, 0)
    assert not quick.is_spent
    for _ in range(int(SEARCH_RESERVE_S / SEARCH_S) + 1):
        slow.spend(2 * SEARCH_S, 0)
    assert slow.is_spent


def test_a_search_may_take_the_longer_the_more_it_finds() -> None:
    budget = SearchBudget()
    for _ in range(100):
        budget.spend(100 * SEARCH_S, 100)
    assert not budget.is_spent
