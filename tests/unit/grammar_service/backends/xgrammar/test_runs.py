"""How much a grammar may force at one go, told before anybody looks for it: the library's search has no bound."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import xgrammar
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.backends import Matcher
from grammar_service.backends.xgrammar.recipe import parsed, recipe_of
from grammar_service.backends.xgrammar.runs import LONG, ForcedSearch, most_forced, recursion_tail
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of, ids_of, schema_spec
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE

SCHEMAS = sorted(Path(__file__).parents[5].glob("load_tests/corpus/schemas/business-*.json"))
ENDLESS = 'root ::= "y" | a\na ::= "x" a'
CLASSES = ["a", "b", "ab", "[ab]", "[aa]", "[^\\x00-`b-\U0010ffff]", "[a]*", "[ab]*"]


def doubling(times: int) -> str:
    rules = [f"r{i} ::= r{i + 1} r{i + 1}" for i in range(times)]
    return "\n".join(["root ::= [xy] r0", *rules, f'r{times} ::= "a"'])


def thrice(part: str, times: int) -> str:
    """Ten letters or something else, which no text has or a search does not see, again and again."""
    return f'root ::= "x" a\na ::= b{{{times}}}\nb ::= c{{{times}}}\nc ::= d{{{times}}}\nd ::= {part} | "aaaaaaaaaa"'


def tails(levels: int, text: str) -> str:
    """Rules within one another, each with a text behind the inner one."""
    rules = [f'r{i} ::= [xy] r{i + 1} "{text}"' for i in range(levels)]
    return "\n".join(["root ::= r0", *rules, f"r{levels} ::= [xy]"])


def regex(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text)


def ebnf(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.EBNF, text)


MUCH = {
    "nested repetition": regex("((((a{99}){99}){99}){99}){99}"),
    "nested repetition behind a choice": regex("(b|c)((((a{99}){99}){99}){99}){99}"),
    "nested repetition, maybe": regex("x|y((((a{99}){99}){99}){99}){99}"),
    "a class of one character, twice": regex("[aa]{70000}"),
    "a class without all others": ebnf("root ::= [^\\x00-`b-\U0010ffff]{70000}"),
    "periods of two lengths": regex("(a|aa)(((a{99}){99}){99}){99}"),
    "many equal items": schema_spec({"type": "array", "items": {"const": "hello"}, "minItems": 20_000}),
    "arrays of arrays": schema_spec(
        {"type": "array", "minItems": 200, "items": {"type": "array", "minItems": 200, "items": {"enum": [True, "yes"]}}}
    ),
    "a pattern": schema_spec({"type": "string", "pattern": "^[xy]((a{99}){99}){99}$"}),
    "doubling": ebnf(doubling(40)),
    "one text behind another": ebnf(tails(280, "z" * 250)),
    "no end, by a token": ebnf('root ::= "x" [a]* Token(30)'),
    "or a class of nothing": ebnf(thrice("[^\\u0000-\\U0010ffff]", 60)),
    "or a choice that leads to nothing": ebnf(thrice("[ab] [^\\u0000-\\U0010ffff]", 60)),
    "or a token": ebnf(thrice("Token(30)", 60)),
    "behind a class that is repeated not at all": regex("((([ab]{0}aaaaaaaaaa){60}){60}){60}"),
}
WITHOUT_END = {
    "a recursion": ebnf(ENDLESS),
    "a class of nothing": ebnf('root ::= "x" [a]* [^\\u0000-\\U0010ffff]'),
    "a class of surrogates": ebnf('root ::= "x" [a]* [^\\u0000-\\ud7ff\\ue000-\\U0010ffff]'),
}
LITTLE = {
    "a long text": regex("[a-z]{50000}"),
    "free repetition": regex("([a-z]xyz){9000}"),
    "a short repetition": regex("((ab){9}){9}"),
    "a long list": schema_spec({"type": "array", "items": {"type": "object", "properties": {"a": {}}, "required": ["a"]}, "minItems": 900}),
    "a long constant": schema_spec({"const": "z" * 20_000}),
    "a recursion": ebnf('root ::= "(" root ")" | [a-z]'),
    "a recursion whose levels differ": ebnf('root ::= "(" root ")" | "[" root "]" | [a-z]'),
    "a recursion that goes on by a choice": ebnf(f'root ::= "(" root "{"z" * 100}" [ab] | [a-z]'),
    "doubling, seven times": ebnf(doubling(7)),
    **{path.stem: schema_spec(json.loads(path.read_text())) for path in SCHEMAS},
}


@pytest.mark.parametrize("spec", MUCH.values(), ids=MUCH)
def test_what_might_be_long_is_not_looked_for(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> None:
    assert recursion_tail(parsed(recipe_of(spec))) is None
    matcher = grammar_of(spec, tokenizer, "xgrammar").matcher(None, 0)
    assert matcher.forced_bytes() == b""


@pytest.mark.parametrize("spec", WITHOUT_END.values(), ids=WITHOUT_END)
def test_a_text_without_end_might_be_long(spec: GrammarSpec) -> None:
    assert recursion_tail(parsed(recipe_of(spec))) is None


@pytest.mark.parametrize("spec", LITTLE.values(), ids=LITTLE)
def test_what_is_short_is_looked_for(spec: GrammarSpec) -> None:
    assert recursion_tail(parsed(recipe_of(spec))) is not None


repeated = st.recursive(
    st.sampled_from(CLASSES),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, st.sampled_from(["?", "*", "{2}", "{3}", "{0,2}", "{2,3}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(text=repeated, seed=st.integers(0, 1_000))
def test_no_state_forces_more_than_the_bound(text: str, seed: int) -> None:
    grammar = xgrammar.Grammar.from_regex(text)
    matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(BYTES, max_threads=1).compile_grammar(grammar))
    choose, bound = random.Random(seed), most_forced(grammar)
    for _ in range(30):
        assert len(matcher.find_jump_forward_string()) <= bound
        if not any(matcher.accept_string(letter) for letter in choose.sample("ab", 2)):
            break


BYTES = xgrammar.TokenizerInfo(["</s>", *"abcdefg"], stop_token_ids=[0])


def test_the_end_of_a_deep_recursion_is_the_last_that_is_looked_for(tokenizer: GrammarTokenizer) -> None:
    levels = LONG // 60 + 1
    grammar = grammar_of(ebnf(f'root ::= "(" root "{"z" * 60}" | "a" | "b"'), tokenizer, "xgrammar")
    deep, other = (opened(grammar.matcher(None, 0), levels) for _ in range(2))
    assert len(deep.forced_bytes()) == levels * 60 > LONG
    assert other.forced_bytes() == b""


RECURSIONS = {
    "one rule": (300, f'root ::= "(" root "{"z" * 300}" | "a" | "b"'),
    "two rules": (130, f'root ::= "(" other "{"z" * 50}" | "a" | "b"\nother ::= "(" root "{"w" * 80}" | "a" | "b"'),
    "a byte that opens both": (130, f'root ::= other "{"z" * 50}" | "a" | "b"\nother ::= "(" root "{"w" * 80}"'),
}


@pytest.mark.parametrize(("tail", "rules"), RECURSIONS.values(), ids=RECURSIONS)
def test_a_recursion_that_may_have_left_much_is_not_looked_at(tail: int, rules: str, tokenizer: GrammarTokenizer) -> None:
    spec = ebnf(rules)
    assert recursion_tail(parsed(recipe_of(spec))) == tail
    matcher = opened(grammar_of(spec, tokenizer, "xgrammar").matcher(None, 0), 4 * LONG // tail)
    assert matcher.forced_bytes() == b""
    matcher.rollback(10)
    assert matcher.accept(*ids_of("a"))
    assert len(matcher.forced_bytes()) > LONG


@pytest.mark.parametrize(("tail", "rules"), RECURSIONS.values(), ids=RECURSIONS)
def test_no_byte_opens_more_than_the_tail(tail: int, rules: str, tokenizer: GrammarTokenizer) -> None:
    matcher = opened(grammar_of(ebnf(rules), tokenizer, "xgrammar").matcher(None, 0), 20)
    assert 20 * tail // 2 <= len(matcher.forced_bytes()) <= 20 * tail


@pytest.mark.parametrize("alternative", ["Token(30)", "ExcludeToken(30)"])
def test_a_single_token_is_a_choice_though_no_search_sees_it(alternative: str, tokenizer: GrammarTokenizer) -> None:
    matcher = grammar_of(ebnf(f'root ::= ({alternative} | "yes it is") "b"'), tokenizer, "xgrammar").matcher(None, 0)
    assert len(allowed(matcher, VOCAB_SIZE)) > 1
    assert matcher.forced_bytes() == b""


def test_a_long_text_ends_the_search() -> None:
    search = ForcedSearch(tail=0)
    search.found(LONG)
    assert search.is_allowed(1)
    search.found(LONG + 1)
    assert not search.is_allowed(1)


def opened(matcher: Matcher, levels: int) -> Matcher:
    assert all(matcher.accept(token) for token in ids_of("(" * levels + "a"))
    return matcher
