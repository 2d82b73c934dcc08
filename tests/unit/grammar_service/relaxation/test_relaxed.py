"""What no backend enforces is left out, at places where that allows more and never less."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.conformance.acceptors import chosen
from grammar_service.errors import GrammarError, InvalidGrammar, UnsupportedGrammar
from grammar_service.limits import Limits
from grammar_service.relaxation import LEFT_OUT, relaxed
from grammar_service.resolve import resolve, resolve_relaxed
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

TWICE = {"type": "string", "pattern": "^(a)\\1$"}
"""A pattern that no automaton knows, and Python does."""


def spec(schema: Any, closed: bool = True) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), closed=closed)


def told(schema: Any) -> tuple[Any, tuple[str, ...]]:
    less = relaxed(spec(schema))
    return json.loads(less.spec.text), less.left_out


def test_a_schema_that_is_enforced_stays_as_it_is() -> None:
    asked = spec({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert relaxed(asked).spec is asked
    assert relaxed(asked).left_out == ()


@pytest.mark.parametrize(
    ("schema", "less", "places"),
    [
        (TWICE, {"type": "string"}, ("/pattern",)),
        ({"properties": {"a": TWICE}}, {"properties": {"a": {"type": "string"}}}, ("/properties/a/pattern",)),
        ({"type": "object", "properties": {"a": {"not": TWICE}}}, {"type": "object", "properties": {"a": {}}}, ("/properties/a/not",)),
        (
            {"oneOf": [{**TWICE, "minLength": 1}, {"type": "string", "maxLength": 9}]},
            {"anyOf": [{"type": "string", "minLength": 1}, {"type": "string", "maxLength": 9}]},
            ("/oneOf", "/oneOf/0/pattern"),
        ),
        ({"if": TWICE, "then": {"minLength": 1}, "type": "string"}, {"type": "string"}, ("/if",)),
        (
            {"properties": {"a": {"$ref": "#/$defs/T"}, "b": {"not": {"$ref": "#/$defs/T"}}}, "$defs": {"T": TWICE}},
            {"properties": {"a": {"$ref": "#/$defs/T"}, "b": {}}, "$defs": {"T": {"type": "string"}}},
            ("/properties/b/not", "/$defs/T/pattern"),
        ),
    ],
)
def test_what_goes_is_the_assertion_or_what_would_turn_it_round(schema: Any, less: Any, places: tuple[str, ...]) -> None:
    assert told(schema) == (less, places)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema"},
        {"$schema": "https://example.com/dialect", "type": "array", "uniqueItems": True, "pattern": "(a)\\1"},
        {"type": "string", "pattern": "(?<n>a)\\k<n>"},
    ],
)
def test_what_could_not_be_checked_either_is_refused(schema: Any) -> None:
    with pytest.raises(UnsupportedGrammar):
        relaxed(spec(schema, closed=False))


def test_a_broken_schema_is_refused() -> None:
    with pytest.raises(InvalidGrammar):
        relaxed(spec({"type": "objec"}))


def test_what_stood_in_another_is_gone_with_it() -> None:
    schema = {"unevaluatedProperties": {"minimum": 1, "unevaluatedItems": {}, "else": {}}, "pattern": "(?=a)b"}
    assert relaxed(spec(schema, closed=False)).left_out


@pytest.mark.parametrize("dialect", [{"a": True}, 1.5, "http://["])
def test_a_dialect_that_is_no_url_is_no_crash(dialect: Any) -> None:
    assert relaxed(spec({"$schema": dialect, "type": "string", "pattern": "^(?!(a)\\1$)"}, closed=True)).spec


def test_the_resolution_tells_what_is_left_out_and_has_a_key_of_its_own() -> None:
    asked = spec({"type": "object", "properties": {"a": TWICE}})
    found = resolve_relaxed(asked, Limits(), "fingerprint")
    assert found.left_out == ("/properties/a/pattern",)
    assert [(warning.code, warning.pointer) for warning in found.warnings] == [(LEFT_OUT, "/properties/a/pattern")]
    exact = spec({"type": "object", "properties": {"a": {"type": "string"}}})
    assert found.key == resolve(exact, Limits(), "fingerprint").key


def test_where_composed_schemas_are_left_out_others_stay_open() -> None:
    """They were open, and a member that only a lost part asks for must have its place."""
    schema = {"type": "object", "properties": {"a": {}}, "allOf": [{"required": ["b"]}, {"propertyNames": TWICE}]}
    assert not relaxed(spec(schema)).spec.closed


def test_many_places_are_given_up_at_once() -> None:
    names = [f"p{number}" for number in range(40)]
    schema = {"type": "object", "properties": dict.fromkeys(names, TWICE), "required": names}
    less, places = told(schema)
    assert set(places) == {f"/properties/{name}/pattern" for name in names}
    assert less == {**schema, "properties": {name: {"type": "string"} for name in names}}


def without(word: str) -> Callable[[GrammarSpec], None]:
    """A library that cannot use schemas with a word in them."""

    def compiles(asked: GrammarSpec) -> None:
        if word in asked.text:
            raise UnsupportedGrammar("it is too much")

    return compiles


@pytest.mark.parametrize(
    ("schema", "word", "places"),
    [
        # What had to be rewritten for the backend: each `if`, with what belongs to it.
        (
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"if": {"required": ["c"]}, "then": False}],
            },
            '"if"',
            ("/allOf/0/if", "/allOf/1/if"),
        ),
        # Nothing had to be: the innermost part that is more than half of the schema.
        (
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "enum": [f"v{n}" for n in range(99)]}}},
            '"v98"',
            ("/properties/b/enum",),
        ),
    ],
)
def test_what_a_library_cannot_use_goes_too(schema: Any, word: str, places: tuple[str, ...]) -> None:
    asked = spec(schema, closed=False)
    assert relaxed(asked).left_out == ()
    less = relaxed(asked, without(word))
    assert word not in less.spec.text
    assert less.left_out == places
    assert relaxed(asked, without("unheard of")).spec is asked


def test_a_library_that_can_use_nothing_says_so() -> None:
    with pytest.raises(UnsupportedGrammar, match="too much"):
        relaxed(spec({"type": "object", "properties": {"a": {"type": "integer"}}}), without(""))


LEAVES: list[Any] = [
    TWICE,
    {"type": "integer"},
    {"type": "string", "maxLength": 2},
    {"minimum": 2},
    {"type": "array", "uniqueItems": True},
    {"enum": [1, "aa"]},
]
leaves = st.sampled_from(LEAVES)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda x: {"not": x}, inner),
        st.builds(lambda x, y: {"oneOf": [x, y]}, inner, inner),
        st.builds(lambda x, y: {"anyOf": [x, y]}, inner, inner),
        st.builds(lambda x, y: {"allOf": [x, y]}, inner, inner),
        st.builds(lambda x, y, z: {"if": x, "then": y, "else": z}, inner, inner, inner),
        st.builds(lambda x: {"type": "array", "items": x}, inner),
        st.builds(lambda x, y: {"type": "array", "prefixItems": [x], "items": y}, inner, inner),
        st.builds(lambda x, most: {"type": "array", "contains": x, "maxContains": most}, inner, st.integers(1, 2)),
        st.builds(lambda x, y: {"properties": {"a": x}, "patternProperties": {"^b": y}, "additionalProperties": False}, inner, inner),
        st.builds(lambda x, y: {"properties": {"a": x}, "allOf": [y], "unevaluatedProperties": False}, inner, inner),
    ),
    max_leaves=5,
)
VALUES: list[Any] = [
    *(1, 3, "a", "aa", "aaa"),
    *([], [1], [1, 1], ["aa", "aa"], [["aa"], 2]),
    *({}, {"a": 1}, {"a": "aa"}, {"a": [3, 3], "b": "aa"}, {"b": 2}),
]


@settings(max_examples=150)
@given(schemas)
def test_every_value_of_the_schema_is_one_of_what_is_left(tokenizer: GrammarTokenizer, schema: Any) -> None:
    try:
        less = relaxed(spec(schema, closed=False))
        accepts = chosen(tokenizer, closed=False, formats=True)(json.loads(less.spec.text))
    except GrammarError:
        return
    valid = jsonschema.Draft202012Validator(schema)
    for value in VALUES:
        if valid.is_valid(value):
            assert accepts(tokenizer.encode(json.dumps(value))), (value, less.spec.text)
