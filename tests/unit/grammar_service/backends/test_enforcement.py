"""Whatever a backend claims to support it enforces: on chosen instances, and on random outputs of its grammars."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammar_service.backends import backend_named, select_backend
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of, sample, schema_spec

NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "n": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
    "required": ["v"],
}

PATTERNED = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}, "b": {"type": "integer"}}}
"""For llguidance, closed by itself."""

CASES: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "integer", "minimum": 3, "exclusiveMaximum": 12}, [3, 11], [2, 12, 3.5, "3"]),
    ({"type": "number", "minimum": 0.5, "maximum": 12}, [0.5, 3, 12], [0.4, 12.5, -1]),
    ({"type": "integer", "multipleOf": 7}, [14, 0], [8, 15]),
    ({"type": "number", "multipleOf": 0.5, "minimum": 0}, [1.5, 0], [0.75, -0.5]),
    ({"not": {"type": "object", "required": ["a"]}}, [1, {"b": 2}, [{"a": 1}]], [{"a": 1}]),
    (
        {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}},
        [{"a": 1, "b": 2}, {"a": 2}, 3],
        [{"a": 1}],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "array"}},
            "patternProperties": {"^a": {"minItems": 1}},
            "additionalProperties": True,
        },
        [{"a": [1]}, {"ab": [1]}, {"b": 2}],
        [{"a": []}, {"ab": []}, {"a": 1}],
    ),
    ({"type": "object", "propertyNames": {"pattern": "^a"}}, [{"ab": 1}, {}], [{"b": 1}]),
    ({"type": "object", "minProperties": 1}, [{"a": 1}], [{}]),
    ({"type": "array", "contains": {"const": 1}, "maxItems": 3}, [[1], [0, 1, 2]], [[], [0, 2], [1, 1, 1, 1]]),
    (
        {"type": "array", "contains": {"const": 1}, "allOf": [{"contains": {"type": "string"}}], "maxItems": 8},
        [[1, "a"], [0, "a", 1, 2]],
        [[1], ["a", "b"], []],
    ),
    ({"type": "object", "properties": {"a": {"enum": []}, "b": {"type": "null"}}}, [{}, {"b": None}], [{"a": 1}, {"a": None}]),
    ({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}, [[], ["b", "a"]], [["a", "a"], ["c"]]),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, [[], ["b", "a"]], [["a", "a"], ["a", "b", "a"]]),
    ({"type": "object", "minProperties": 3}, [{"a": 1, "b": 1, "c": 1}, dict.fromkeys("abcd")], [{}, {"a": 1, "b": 1}]),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "null"}, "minProperties": 3},
        [{"a": 1, "b": None, "c": None}, dict.fromkeys("bcd"), dict.fromkeys("bcde")],
        [{"a": 1, "b": None}, dict.fromkeys("bc")],
    ),
    (
        {**PATTERNED, "maxProperties": 1},
        [{}, {"a": "x"}, {"b": 1}],
        [{"a": "x", "b": 1}, {"a": "y"}],
    ),
    (
        {**PATTERNED, "maxProperties": 2},
        [{}, {"a": "x"}, {"a": "x", "b": 1}],
        [{"a": "x", "b": 1, "c": 1}],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {}},
            "anyOf": [{"properties": {"b": {}}, "required": ["b"]}, True],
            "unevaluatedProperties": False,
        },
        [{"a": 1}, {"a": 1, "b": 2}],
        [{"c": 1}, {"a": 1, "c": 2}],
    ),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 2}], [{"a": 1}]),
    ({"type": "string", "minLength": 2, "maxLength": 4}, ["ab", "abcd", "éü"], ["a", "abcde"]),
    ({"type": "string", "maxLength": 2}, ["", "ab"], ["abc"]),
    ({"type": "string", "minLength": 2}, ["ab", "abcdefgh"], ["", "a"]),
    ({"type": "string", "pattern": "^a|b$"}, ["ab", "a", "xb"], ["x", "ba"]),
    ({"type": "string", "pattern": r"^\S$"}, ["a", '"'], ["\u00a0", " ", "ab"]),
    ({"type": "string", "pattern": r"^a(?:\.[0-9]{1,9})?b$"}, ["ab", "a.1b"], ["a1b", "a.b"]),
    ({"type": "string", "pattern": "b", "minLength": 3}, ["abc"], ["b", "ab", "aaa"]),
    (
        {"type": "string", "format": "date"},
        ["2024-02-29", "2000-02-29", "2023-12-31"],
        ["2023-02-29", "1900-02-29", "2023-04-31", "23-01-01"],
    ),
    ({"type": "string", "format": "time"}, ["12:30:00Z", "00:00:00.5+01:00"], ["24:00:00Z", "12:60:00Z", "12:30:00"]),
    ({"type": "string", "format": "date-time"}, ["2024-02-29T12:30:00Z"], ["2023-02-29T12:30:00Z", "2024-02-29"]),
    ({"type": "string", "format": "uuid"}, ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g"]),
    ({"type": "string", "format": "ipv4"}, ["10.0.0.1"], ["10.0.0.256", "10.0.0.01", "10.0.0"]),
    ({"type": "string", "enum": ["a", 'b"\n', 1]}, ["a", 'b"\n'], [1, "c"]),
    ({"enum": ["a", 1], "minLength": 1}, ["a", 1], ["b", 2]),
    ({"const": {"a": [1, "é"]}}, [{"a": [1, "é"]}], [{"a": 1}, {}]),
    ({"enum": [[1, 2], {"b": None}, "c"]}, [[1, 2], {"b": None}, "c"], [[1], {}, "d"]),
    ({"type": ["string", "null"], "maxLength": 1}, ["a", None], ["ab", 1]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3], ["a"]]),
    ({"type": "array", "prefixItems": [{"type": "integer"}]}, [[1]], [["a"], [1, 2]]),
    (
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "null"}, "minItems": 2},
        [[1, None]],
        [[1], [1, 2], [None, None]],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]},
        [{"a": 1}, {"a": 1, "b": []}],
        [{}, {"b": 1}, {"a": 1, "c": 1}],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        [{"a": 1, "b": "x"}],
        [{"a": "x"}, {"b": 1}],
    ),
    ({"type": "object", "required": ["a"]}, [{"a": 1}], [{}, {"b": 1}]),
    ({"type": "object", "properties": {'a"\n': {"type": "null"}, "": {"type": "null"}}, "required": [""]}, [{"": None}], [{'a"\n': None}]),
    (
        {"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 1},
        [{}, {"a": None}],
        [{"a": None, "b": None}, {"a": 1}],
    ),
    ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, [{"x1": 1}], [{"x": "a"}, {"y": 1}]),
    ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string", "maxLength": 1}]}, [3, "a"], [2, "ab", None]),
    ({"type": "string", "anyOf": [{"minLength": 3}, {"maxLength": 1}]}, ["a", "abc"], ["ab"]),
    ({"allOf": [{"type": "string"}, {"enum": ["yes", "no"]}]}, ["yes"], ["maybe", 42]),
    (
        {"oneOf": [{"type": "object", "properties": {"k": {"const": c}, c: {"type": "null"}}, "required": ["k", c]} for c in "ab"]},
        [{"k": "a", "a": None}],
        [{"k": "a", "b": None}, {"k": "c"}],
    ),
    ({"$defs": {"n": NODE}, "$ref": "#/$defs/n"}, [{"v": 1, "n": {"v": 2, "n": None}}], [{"v": 1, "n": {"n": None}}, {"n": None}]),
    ({"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a", "minLength": 3}, ["abc"], ["a", 1]),
    ({"type": "object", "properties": {"a": False, "b": {"type": "null"}}}, [{"b": None}, {}], [{"a": 1}]),
    ({}, [1, {"a": [1, {"b": None}]}, "x"], []),
]
NAMES = [json.dumps(schema)[:70] for schema, _, _ in CASES]


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES, ids=NAMES)
def test_instances_are_accepted_exactly_when_valid(
    schema: Any, valid: list[Any], invalid: list[Any], backend: str, tokenizer: GrammarTokenizer
) -> None:
    spec = schema_spec(schema)
    if backend_named(backend).unsupported(spec):
        assert select_backend(spec).name != backend
        return
    grammar = grammar_of(spec, tokenizer, backend)
    assert [value for value in valid if not accepts(grammar, json.dumps(value, ensure_ascii=False))] == []
    assert [value for value in invalid if accepts(grammar, json.dumps(value, ensure_ascii=False))] == []


@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES, ids=NAMES)
def test_random_outputs_are_valid(schema: Any, valid: list[Any], invalid: list[Any], tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(schema_spec(schema), tokenizer)
    validator = Draft202012Validator(schema)
    texts = [text for seed in range(6) if (text := sample(grammar, tokenizer, seed, most=60)) is not None]
    assert [text for text in texts if not validator.is_valid(json.loads(text))] == []


@pytest.mark.parametrize("others", [True, {"type": "string"}])
def test_a_declared_name_does_not_come_again_in_other_spelling(others: Any, tokenizer: GrammarTokenizer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b\n": {"type": "null"}}, "additionalProperties": others}
    grammar = grammar_of(schema_spec(schema), tokenizer)
    assert accepts(grammar, '{"a": 1, "b\\n": null, "ab": "x", "\u00e9": "y"}')
    for text in ('{"a": 1, "a": "x"}', '{"\\u0061": "x"}', '{"a": 1, "\\u0061": "x"}', '{"b\\u000a": "x"}'):
        assert not accepts(grammar, text)


def test_a_name_of_a_pattern_cannot_be_spelt_around_it(tokenizer: GrammarTokenizer) -> None:
    schema = {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    grammar = grammar_of(schema_spec(schema), tokenizer)
    assert accepts(grammar, '{"ab": 1, "b": "x"}')
    assert not accepts(grammar, '{"\\u0061b": "x"}')


@pytest.mark.parametrize("schema", [{"enum": [2**53 + 1]}, {"const": {"a": [-(2**63)]}}])
def test_numbers_that_a_library_would_round_are_refused(schema: Any) -> None:
    assert backend_named("llguidance").unsupported(schema_spec(schema))


@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_that_a_library_would_round_move_inwards(sign: int, tokenizer: GrammarTokenizer) -> None:
    bounds = {"minimum": 0, "maximum": 2**53 + 3} if sign > 0 else {"minimum": -(2**53) - 3, "maximum": 0}
    grammar = grammar_of(schema_spec({"type": "integer", **bounds}), tokenizer, "llguidance")
    assert [accepts(grammar, str(sign * (2**53 + beyond))) for beyond in (0, 2, 4)] == [True, True, False]


def test_the_lowest_numbers_of_64_bits_are_lost_and_none_below_is_let_through(tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(schema_spec({"type": "integer", "minimum": -(2**63), "maximum": 0}), tokenizer, "llguidance")
    assert accepts(grammar, str(-(2**63) + 1024))
    assert not any(accepts(grammar, str(-(2**63) - beyond)) for beyond in (1, 2, 1024, 2**62))


def test_the_largest_whole_numbers_are_exact(tokenizer: GrammarTokenizer) -> None:
    for most in (2**53, 2**63 - 1):
        grammar = grammar_of(schema_spec({"type": "integer", "minimum": 0, "maximum": most}), tokenizer, "llguidance")
        assert [accepts(grammar, str(most + beyond)) for beyond in (-1, 0, 1)] == [True, True, False]
