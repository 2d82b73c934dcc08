"""Arrays of which so many items are of some kind, wherever they stand in a schema, in every layout of the library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from grammar_service.backends import backend_named, select_backend
from grammar_service.errors import GrammarError
from grammar_service.spec import COMPACT, FLEXIBLE, STANDARD
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.random_walks import Walker, repeats
from load_tests.errors import BenchFailed
from tests.driving import accepts, grammar_of, schema_spec
from tests.tokenizers.quoting_tokenizer import quoting_tokenizer

SEPARATORS = {STANDARD: (", ", ": "), COMPACT: (",", ":"), FLEXIBLE: (" ,", " : ")}
ONE: dict[str, Any] = {"type": "array", "contains": {"const": 1}}
FEW: dict[str, Any] = {"type": "array", "contains": {"type": "integer", "minimum": 5}, "minContains": 2, "maxContains": 3}
TAGGED: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer"}}, "required": ["kind"]},
    "contains": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
    "maxContains": 1,
}
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (ONE, [[1], [0, 1], [1, 1, [1]], [2, {"a": 1}, 1, "x"]], [[], [0], ["1"], [[1]], [11]]),
    (FEW, [[5, 6], ["a", 5, 1, 7, 9], [5, 5, 55, 4]], [[], [5], [5, 6, 7, 8], [4, 4], 5]),
    (TAGGED, [[{"kind": "a"}], [{"kind": "b", "n": 1}, {"kind": "a", "n": 2}, {"kind": "b"}]], [[], [{"kind": "b"}], [{"kind": "a"}] * 2]),
    (
        {"type": "array", "contains": {"type": "string"}, "minContains": 0, "maxContains": 1, "minItems": 2},
        [[1, 2], [1, "a"], ["a", 1, 2, 3]],
        [["a", "b"], [1], ["a", 1, "a"]],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "contains": {"enum": ["a", 1]}, "minContains": 2},
        [["a", 1], ["a", 2, "a"], ["b", 2, "a", None, 1]],
        [["a"], ["b", 1], ["a", 2], [1, 1]],
    ),
    (
        {"type": "array", "allOf": [{"contains": {"const": "a"}}, {"contains": {"type": "string", "minLength": 2}}], "maxItems": 20},
        [["a", "bb"], ["bb", "a"], ["bb", 1, "a"]],
        [["a"], ["bb"], ["a", "b"]],
    ),
    (
        {"type": "object", "properties": {'a"\\é': ONE, "b": {"type": "integer"}}, "required": ["b"], "additionalProperties": ONE},
        [{"b": 1}, {'a"\\é': [1], "b": 1}, {"b": 1, "x": [0, 1], "y": [1]}],
        [{}, {'a"\\é': [], "b": 1}, {"b": 1, "x": [0]}, {'a"\\é': [1]}],
    ),
    (
        {"type": "object", "patternProperties": {"^a": ONE, "^b": FEW}, "additionalProperties": False, "maxProperties": 2},
        [{}, {"a": [1]}, {"ab": [1], "b": [5, 6]}],
        [{"a": []}, {"b": [1]}, {"c": [1]}, {"a": [1], "ab": [1], "ac": [1]}],
    ),
    (
        {"type": "object", "properties": {"list": ONE, "next": {"$ref": "#"}}, "required": ["list"], "additionalProperties": False},
        [{"list": [1]}, {"list": [1], "next": {"list": [0, 1], "next": {"list": [1]}}}],
        [{"list": []}, {"list": [1], "next": {"list": [0]}}],
    ),
    (
        {"type": "array", "prefixItems": [ONE], "items": {"anyOf": [FEW, {"type": "null"}]}, "minItems": 2, "maxItems": 3},
        [[[1], None], [[1], [5, 6], None]],
        [[[1]], [[0], None], [[1], [5]], [[1], None, None, None]],
    ),
    (
        {"type": "array", "contains": {"type": "string"}, "unevaluatedItems": False, "prefixItems": [{"type": "integer"}]},
        [[1, "a"], [1, "a", "b"]],
        [[], [1], [1, 2], ["a"], [1, "a", 2]],
    ),
    (
        {"type": "object", "properties": {"a": {}, "c": {"contains": {"const": 1}}}, "required": ["c", "a"], "additionalProperties": True},
        [{"a": 0, "c": 0}, {"a": -1, "c": [1], "d": 2}],
        [{"a": -1}, {"c": 1}, {"c": [], "a": 0}, {"d": 1}],
    ),
    ({"type": "array", "not": {"contains": {"const": 1}, "minContains": 2}}, [[], [1], [1, 2, 3]], [[1, 1], [1, 0, 1]]),
    ({"type": "array", "not": {"prefixItems": [{}], "items": {"const": 1}}}, [[1, 2], [0, 1, 0]], [[], [1], [2, 1, 1]]),
]


@pytest.fixture(scope="module")
def quoting() -> GrammarTokenizer:
    return quoting_tokenizer()


@pytest.mark.parametrize("whitespace", SEPARATORS)
@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES)
def test_items_are_counted(schema: Any, valid: Sequence[Any], invalid: Sequence[Any], whitespace: str, tokenizer: GrammarTokenizer) -> None:
    validator = Draft202012Validator(schema)
    assert [*map(validator.is_valid, valid), *map(validator.is_valid, invalid)] == [True] * len(valid) + [False] * len(invalid)
    grammar = grammar_of(replace(schema_spec(schema, whitespace), closed=False), tokenizer)

    def accepted(value: Any) -> bool:
        return accepts(grammar, json.dumps(value, separators=SEPARATORS[whitespace], ensure_ascii=False))

    assert [*map(accepted, valid), *map(accepted, invalid)] == [True] * len(valid) + [False] * len(invalid)


@pytest.mark.parametrize("whitespace", SEPARATORS)
@pytest.mark.parametrize("schema", [schema for schema, _, _ in CASES])
def test_walks_end_with_what_is_valid(schema: Any, whitespace: str, quoting: GrammarTokenizer) -> None:
    grammar = grammar_of(replace(schema_spec(schema, whitespace), closed=False), quoting)
    for seed in range(3):
        text = Walker(quoting, Random(seed)).walk(grammar)
        assert Draft202012Validator(schema).is_valid(json.loads(text)), text
        assert not repeats(text)


def test_tokens_are_taken_back(tokenizer: GrammarTokenizer) -> None:
    matcher = grammar_of(schema_spec(FEW), tokenizer).matcher(None, 64)
    tokens = [tokenizer.encode(text) for text in ("[5, 6, 7", "[5, 6, 7, 8]", "[5, 6, 7, 4]")]
    assert all(matcher.accept(token) for token in tokens[0])
    matcher.rollback(len(tokens[0]))
    assert not all(matcher.accept(token) for token in tokens[1])
    matcher.reset()
    assert all(matcher.accept(token) for token in tokens[2])


def test_the_other_backend_leaves_them() -> None:
    assert select_backend(schema_spec(ONE)).name == "llguidance"
    assert backend_named("xgrammar").unsupported(schema_spec(ONE))


def test_a_keyword_of_rewrites_is_none_of_a_user() -> None:
    spec = schema_spec({"type": "array", "items": {"type": "null"}, "sequence": {"edges": [], "ends": []}})
    assert select_backend(spec).name == "xgrammar"


_kinds = st.sampled_from(
    [{"const": 1}, {"type": "string"}, {"enum": ["a", 1, None]}, {"type": "integer", "minimum": 3}, {"type": "string", "maxLength": 1}]
)
"""Of which a walk comes upon some."""
_arrays = st.fixed_dictionaries(
    {"type": st.just("array"), "contains": _kinds, "minContains": st.integers(0, 3)},
    optional={
        "maxContains": st.integers(0, 4),
        "items": _kinds,
        "minItems": st.integers(0, 4),
        "maxItems": st.integers(3, 12),
        "prefixItems": st.lists(_kinds, min_size=1, max_size=2),
    },
)
_schemas = st.recursive(
    _arrays,
    lambda inner: st.one_of(
        st.builds(lambda left, right: {"anyOf": [left, right]}, inner, inner | _kinds),
        st.builds(lambda left, right: {"type": "array", "allOf": [left, right]}, _arrays, _arrays),
        st.builds(lambda item, most: {"type": "array", "items": item, "maxItems": most}, inner, st.integers(1, 3)),
        st.builds(
            lambda members, others, needed: {
                "type": "object",
                "properties": members,
                "required": [*members][:needed],
                "additionalProperties": others,
            },
            st.dictionaries(st.sampled_from(["a", "b", "c"]), inner | _kinds, max_size=3),
            inner | st.booleans(),
            st.integers(0, 2),
        ),
    ),
    max_leaves=4,
)


@given(schema=_schemas, seed=st.integers(0, 2**32), whitespace=st.sampled_from([*SEPARATORS]))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_schemas_are_walked_to_the_end(schema: Any, seed: int, whitespace: str, quoting: GrammarTokenizer) -> None:
    try:
        grammar = grammar_of(replace(schema_spec(schema, whitespace), closed=False), quoting)
    except GrammarError:
        assume(False)
    try:
        text = Walker(quoting, Random(seed)).walk(grammar)
    except BenchFailed as error:
        assume(not str(error).startswith("no end"))  # by chance, a walk need not come upon the one item that ends it
        raise
    assert Draft202012Validator(schema).is_valid(json.loads(text)), text
    assert not repeats(text)
