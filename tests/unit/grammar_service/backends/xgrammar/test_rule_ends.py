"""A rule that no text ends is found before a request gets stuck in it."""

from __future__ import annotations

import pytest
import xgrammar

from grammar_service.backends.xgrammar.rule_ends import endless_rule
from grammar_service.errors import InvalidGrammar
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of

ENDLESS = {
    "root ::= root": "root",
    "root ::= a\na ::= root": "root",
    'root ::= root "a"': "root",
    'root ::= "a" root': "root",
    'root ::= "x" b\nb ::= c b\nc ::= ""': "root",
    'root ::= "a" b | "c"\nb ::= b "d"': "b",
    'root ::= "a" b{0,2}\nb ::= "x" b': "b",
    "root ::= [^\\x00-\\U0010ffff]": "root",
}
ENDING = [
    'root ::= root | "a"',
    'root ::= "a" root?',
    'root ::= ""',
    'root ::= a{2,3}\na ::= [x-z]* | "(" a ")"',
    'root ::= "a"\nunused ::= unused',
    'root ::= a b\na ::= "" | b\nb ::= "x" | a',
]


@pytest.mark.parametrize(("grammar", "rule"), ENDLESS.items())
def test_a_rule_that_no_text_ends_is_named(grammar: str, rule: str) -> None:
    assert endless_rule(xgrammar.Grammar.from_ebnf(grammar)) == rule


@pytest.mark.parametrize("grammar", ENDING)
def test_a_grammar_that_ends_has_none(grammar: str) -> None:
    assert endless_rule(xgrammar.Grammar.from_ebnf(grammar)) is None


def test_a_deep_chain_of_rules_takes_linear_time() -> None:
    chain = "\n".join(f'r{index} ::= "x" r{index + 1} | r{index + 1}' for index in range(20_000))
    assert endless_rule(xgrammar.Grammar.from_ebnf(f'root ::= r0\n{chain}\nr20000 ::= "y"')) is None


@pytest.mark.parametrize(
    "spec",
    [
        GrammarSpec(GrammarKind.EBNF, "root ::= root"),
        GrammarSpec(GrammarKind.LARK, "start: start"),
        GrammarSpec(GrammarKind.LARK, 'start: "x" a\na: a "y"'),
        GrammarSpec(
            GrammarKind.STRUCTURAL_TAG,
            '{"type": "structural_tag", "format": {"type": "grammar", "grammar": "root ::= root"}}',
        ),
    ],
    ids=lambda spec: f"{spec.kind}: {spec.text[:20]}",
)
def test_a_grammar_without_an_end_does_not_compile(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(InvalidGrammar, match="no text matches it"):
        grammar_of(spec, tokenizer)


def test_a_grammar_of_the_empty_text_compiles(tokenizer: GrammarTokenizer) -> None:
    for spec in (GrammarSpec(GrammarKind.EBNF, 'root ::= ""'), GrammarSpec(GrammarKind.LARK, 'start: ""')):
        assert accepts(grammar_of(spec, tokenizer), "")
