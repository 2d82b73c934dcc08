"""A short end for an unfinished answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.segments.closing import ClosingSearch
from grammar_service.spec import COMPACT, FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of, schema_spec

LIST = {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}, "required": ["n"]}
SCHEMAS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nested": (
        {
            "properties": {"a": {"type": "array", "items": {"type": "object"}}, "b": {"type": "null"}},
            "required": ["a", "b"],
            "type": "object",
        },
        ["", '{"a', '{"a": [', '{"a": [{"x": [1, "', '{"a": [{}, {', '{"a": [], "b": nu'],
    ),
    "pattern": ({"type": "string", "pattern": "^(abc)+d$"}, ["", '"', '"abcab']),
    "uri": ({"type": "string", "format": "uri"}, ["", '"htt', '"https://a.b/']),
    "version": ({"type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$"}, ["", '"1', '"12.']),
    "date": ({"type": "string", "format": "date-time"}, ['"2026-1']),
    "long string": ({"type": "string", "minLength": 30}, ["", '"abc']),
    "number": ({"type": "number", "minimum": 0.5}, ["", "0", "0.", "1."]),
    "escape": ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, ['{"a": "x\\', '{"a": "\\u00']),
    "enum": ({"enum": ["small", "smaller", 'with "quotes"', 12]}, ["", '"small', '"w', "1"]),
    "recursive": ({"$ref": "#/$defs/n", "$defs": {"n": LIST}}, ["", '{"n": {"n": {"n']),
}


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


@pytest.fixture(scope="module")
def search(tokenizer: GrammarTokenizer) -> ClosingSearch:
    return ClosingSearch(tokenizer)


@pytest.mark.parametrize("whitespace", [STANDARD, FLEXIBLE, COMPACT])
@pytest.mark.parametrize("name", SCHEMAS)
def test_an_end_makes_the_text_valid(name: str, whitespace: str, tokenizer: GrammarTokenizer, search: ClosingSearch) -> None:
    schema, starts = SCHEMAS[name]
    grammar = grammar_of(schema_spec(schema, whitespace), tokenizer)
    for start in starts:
        text = start.replace(": ", ":").replace(", ", ",") if whitespace == COMPACT else start
        matcher = grammar.matcher(None, 0)
        assert all(map(matcher.accept, tokenizer.inner.encode(text.encode()) or ()))
        end = search.find(matcher, 200)
        assert end is not None, text
        assert search.find(matcher, 200) == end
        assert search.ends(matcher, end)
        whole = text + b"".join(tokenizer.vocabulary[token] for token in end).decode()
        Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(json.loads(whole))


def test_an_end_that_takes_more_tokens_than_it_may_is_none(tokenizer: GrammarTokenizer, search: ClosingSearch) -> None:
    grammar = grammar_of(schema_spec({"type": "string", "minLength": 30}), tokenizer)
    matcher = grammar.matcher(None, 0)
    end = search.find(matcher, 100)
    assert end is not None
    assert search.find(matcher, len(end)) == end
    assert search.find(matcher, len(end) - 1) is None


def test_optional_members_stay_out(tokenizer: GrammarTokenizer, search: ClosingSearch) -> None:
    grammar = grammar_of(schema_spec({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}), tokenizer)
    assert _text(search.find(grammar.matcher(None, 0), 9), tokenizer) == "{}"


@pytest.mark.parametrize(
    "spec",
    [
        GrammarSpec(GrammarKind.REGEX, "(ab|cd)+[0-9]{2}x"),
        GrammarSpec(GrammarKind.CHOICE, '["yes", "no"]'),
        GrammarSpec(GrammarKind.EBNF, 'root ::= "(" root ")" | [a-z]+'),
        GrammarSpec(GrammarKind.LARK, 'start: "(" start ")" | /[a-z]+/'),
    ],
    ids=lambda spec: spec.kind,
)
def test_other_grammars_end_as_well(spec: GrammarSpec, tokenizer: GrammarTokenizer, search: ClosingSearch) -> None:
    matcher = grammar_of(spec, tokenizer).matcher(None, 0)
    end = search.find(matcher, 600)
    assert end is not None
    assert search.ends(matcher, end)


def _text(tokens: tuple[int, ...] | None, tokenizer: GrammarTokenizer) -> str:
    assert tokens is not None
    return b"".join(tokenizer.vocabulary[token] for token in tokens).decode()
