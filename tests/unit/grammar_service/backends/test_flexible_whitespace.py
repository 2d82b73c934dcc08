"""Flexible whitespace is free between the tokens of JSON, but for the length of its runs: on both backends alike."""

from __future__ import annotations

import json

import pytest

from grammar_service.backends import CompiledGrammar
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.spec import FLEXIBLE, MAX_WHITESPACE, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, allowed, grammar_of, ids_of, schema_spec
from tests.tokenizers.tiny_tokenizer import STOP_ID, VOCAB_SIZE

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "boolean"}},
        "c": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["a", "b", "c"],
}
VALUE = {"a": 12, "b": [True, False], "c": {'"\\': " " * 50, "d": ""}}
TOKENS = '{ "a" : 12 , "b" : [ true , false ] , "c" : { "d" : "x" } }'.split()
EMPTY = '{ "a" : 1 , "b" : [ ] , "c" : { } }'.split()
SPACES = ids_of(" ")[0]


@pytest.fixture(params=["xgrammar", "llguidance"])
def grammar(request: pytest.FixtureRequest, tokenizer: GrammarTokenizer) -> CompiledGrammar:
    return grammar_of(schema_spec(SCHEMA, FLEXIBLE), tokenizer, request.param)


@pytest.mark.parametrize("char", " \t\n\r")
@pytest.mark.parametrize("tokens", [TOKENS, EMPTY], ids=["full", "empty"])
def test_a_run_of_32_is_accepted_and_one_of_33_refused_everywhere(tokens: list[str], char: str, grammar: CompiledGrammar) -> None:
    def with_run(place: int, length: int) -> str:
        return "".join(tokens[:place]) + char * length + "".join(tokens[place:])

    places = range(1, len(tokens))
    assert [place for place in places if not accepts(grammar, with_run(place, MAX_WHITESPACE))] == []
    assert [place for place in places if accepts(grammar, with_run(place, MAX_WHITESPACE + 1))] == []


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
@pytest.mark.parametrize("separators", [None, (",", ":"), (" , ", " :\t")])
def test_what_json_dumps_writes_is_accepted(indent: int | None, separators: tuple[str, str] | None, grammar: CompiledGrammar) -> None:
    assert accepts(grammar, json.dumps(VALUE, indent=indent, separators=separators))


def test_all_runs_may_be_long_at_once(grammar: CompiledGrammar) -> None:
    assert accepts(grammar, (" " * MAX_WHITESPACE).join(TOKENS))


def test_strings_hold_as_much_whitespace_as_they_like(grammar: CompiledGrammar) -> None:
    assert accepts(grammar, json.dumps({"a": 1, "b": [], "c": {" " * 40 + '\\"': '\\" ' + " " * 99}}))


def test_masks_and_acceptance_agree_at_the_bound(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 64)
    tokens = [*ids_of("{"), *[SPACES] * MAX_WHITESPACE]
    assert accepted_prefix(matcher, [*tokens, SPACES]) == len(tokens)
    assert all(matcher.accept(token) for token in tokens)
    options = allowed(matcher, VOCAB_SIZE)
    assert options == {token for token in range(VOCAB_SIZE) if accepted_prefix(matcher, [token])}
    assert SPACES not in options
    assert ids_of('"')[0] in options


def test_rollback_and_reset_take_the_run_back(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 64)
    for token in (*ids_of("{"), *[SPACES] * MAX_WHITESPACE):
        assert matcher.accept(token)
    assert not matcher.accept(SPACES)
    matcher.rollback(3)
    assert [matcher.accept(SPACES) for _ in range(4)] == [True, True, True, False]
    matcher.reset()
    assert accepted_prefix(matcher, [*ids_of("{"), *[SPACES] * MAX_WHITESPACE]) == 1 + MAX_WHITESPACE


def test_stop_ends_the_text_and_can_be_taken_back(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 64)
    assert all(matcher.accept(token) for token in ids_of("".join(EMPTY)))
    assert matcher.accept(STOP_ID)
    assert matcher.is_terminated()
    assert allowed(matcher, VOCAB_SIZE) == set()
    matcher.rollback(1)
    assert STOP_ID in allowed(matcher, VOCAB_SIZE)
    with pytest.raises(ValueError, match="cannot take back"):
        matcher.rollback(1000)


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
def test_json_without_a_schema_is_bounded_too(backend: str, tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.JSON_OBJECT, "", FLEXIBLE), tokenizer, backend)
    assert accepts(grammar, '{"a":' + " " * MAX_WHITESPACE + "[1,{}]}")
    assert not accepts(grammar, '{"a":' + " " * (MAX_WHITESPACE + 1) + "[1,{}]}")
