"""What llama.cpp's readers and converters write is read as they mean it."""

from __future__ import annotations

import pytest

from grammar_service.backends.gbnf import plain_gbnf
from grammar_service.errors import InvalidGrammar
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of

PAIRS = r"""# pairs of a name and a number
root ::= "[" space (pair ("," space pair)*)? "]" space # "(" and | stand in comments, too
pair ::= name ":" space [0-9]{1,4} space
name ::= "\"" ([^"\\\x7F\x00-\x1F|(] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
space ::= | " " | "\n"{1,2} [ \t]{0,3}
"""


def _accepted(text: str, tokenizer: GrammarTokenizer, *candidates: str) -> list[str]:
    grammar = grammar_of(GrammarSpec(GrammarKind.EBNF, text), tokenizer)
    return [candidate for candidate in candidates if accepts(grammar, candidate)]


def test_a_rule_may_begin_with_an_alternative_of_nothing(tokenizer: GrammarTokenizer) -> None:
    valid = ["[]", "[ ]", '["a":1]', '["a": 12 ,\n\n\t"\\n": 3]\n']
    assert _accepted(PAIRS, tokenizer, *valid, "[  ]", '["a|":1]', '["a":12345]', "") == valid


@pytest.mark.parametrize(
    ("text", "valid", "invalid"),
    [
        ('root ::= "a" ( | "b") "c"', ["ac", "abc"], ["ab", "abbc"]),
        ('root ::= "a" ("b" | ) "c"', ["ac", "abc"], ["ab"]),
        ('root ::= ("b" | # a ) in a comment\n )+ "c"', ["c", "bbc"], ["b"]),
        ('root ::= "b" | | "c"', ["", "b", "c"], ["bc"]),
        ('root ::= . "b" .', ["abc", "\nb\n", "éb."], ["ab", "abcd"]),
        (r'root ::= "\[" [.] "\]" [\[\]]', ["[.][", "[.]]"], ["[a][", r"\[.\]["]),
        (r'root ::= "\\[|" "(|)"', [r"\[|(|)"], ["[|(|)"]),
    ],
)
def test_it_means_what_it_means_in_llama_cpp(text: str, valid: list[str], invalid: list[str], tokenizer: GrammarTokenizer) -> None:
    assert _accepted(text, tokenizer, *valid, *invalid) == valid


@pytest.mark.parametrize(
    "text", ['root ::= "|(" [|)(] (a | b)\na ::= "x" # ( |\nb ::= a "." [.]', 'a.b ::= "x"\nroot ::= a.b', "", '"', "["]
)
def test_what_needs_no_other_words_comes_back_as_it_is(text: str) -> None:
    assert plain_gbnf(text) == text


@pytest.mark.parametrize("text", ['root ::= "a" |\nb ::= "x"', 'root ::= "a', "root ::= [a", "root ::= (|", "root ::= <think>"])
def test_what_is_no_grammar_there_is_none_here(text: str, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(InvalidGrammar, match="does not compile"):
        grammar_of(GrammarSpec(GrammarKind.EBNF, text), tokenizer)
