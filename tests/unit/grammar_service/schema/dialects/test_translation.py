"""What each dialect says is what its translation says."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.protocols import Validator

from grammar_service.conformance.suite import DRAFTS
from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.schema.dialects.translation import translated
from tests.unit.grammar_service.schema.random_schemas import random_document, random_instance

VALIDATORS: dict[str, type[Validator]] = {
    "draft4": Draft4Validator,
    "draft6": Draft6Validator,
    "draft7": Draft7Validator,
    "draft2019-09": Draft201909Validator,
    "draft2020-12": Draft202012Validator,
}
SHARED: dict[str, Any] = {"a": {"type": "integer"}, "b": {"$ref": "#/definitions/a"}}
OLD: dict[str, Any] = {
    "items by place": {"items": [{"type": "integer"}, {"type": "string"}]},
    "no items": {"items": [], "additionalItems": {"type": "integer"}},
    "items by place and others": {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
    "others without items by place": {"items": {"type": "integer"}, "additionalItems": False},
    "dependencies": {"dependencies": {"a": ["b", "cc"], "b": {"required": ["a"]}, "cc": ["a"]}},
    "nothing depends": {"dependencies": {"a": []}},
    "a reference and what stands beside it": {"$ref": "#/definitions/a", "minimum": 3, "definitions": SHARED},
    "a reference to a reference": {"items": {"$ref": "#/definitions/b"}, "definitions": SHARED},
    "a reference into items by place": {"items": [{"type": "integer"}], "additionalItems": {"$ref": "#/items/0"}},
    "a reference into dependencies": {"dependencies": {"a": {"required": ["b"]}}, "not": {"$ref": "#/dependencies/a"}},
    "a reference beside which definitions stand": {"$ref": "#/definitions/b", "definitions": SHARED, "type": "string"},
    "a reference into an unknown keyword": {
        "items": {"$ref": "#/shapes/b"},
        "shapes": {"b": {"not": {"$ref": "#/shapes/c"}}, "c": {"enum": [1]}},
    },
    "a reference to the parent of one": {
        "anyOf": [{"$ref": "#/shapes/b/items"}, {"$ref": "#/shapes/b"}],
        "shapes": {"b": {"type": "array", "items": {"type": "integer"}}},
    },
    "a reference into data": {"enum": [{"type": "integer"}, 1], "items": {"$ref": "#/enum/0"}},
    "a reference to a list's name": {"properties": {"items": {"type": "integer"}}, "items": {"$ref": "#/properties"}},
}
NEWER: dict[str, Any] = {
    "exclusive bounds": {"exclusiveMinimum": 1, "maximum": 3},
    "a condition": {"if": {"type": "integer"}, "then": {"minimum": 1}, "else": {"type": "string"}},
    "dependent names": {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"required": ["cc"]}}},
    "first items": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
    "names": {"propertyNames": {"maxLength": 1}, "const": {"a": 1}},
    "what is left": {"properties": {"a": True}, "unevaluatedProperties": False},
    "a tree": {"$recursiveAnchor": True, "type": ["array", "integer"], "items": {"$recursiveRef": "#"}},
    "a tree of another name": {"$dynamicAnchor": "node", "type": ["array", "integer"], "items": {"$dynamicRef": "#node"}},
}
"""Each is known by some drafts and an annotation in others."""
BOOLEAN: dict[str, Any] = {
    "both": {"minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": True},
    "inclusive": {"minimum": 1, "exclusiveMinimum": False, "maximum": 3},
    "lone": {"exclusiveMaximum": True},
}
INSTANCES = [
    *(instance for seed in range(400) if "1.0" not in repr(instance := random_instance(random.Random(seed)))),
    *([1, 2], [1, "a"], ["a", 1], [1, "a", 2], [[1]], {"a": 1, "b": 2}),
]
"""Without whole numbers that are written with a fraction: draft-04 does not call them integers, and grammars do not write them."""


def different(left: Validator, right: Validator) -> list[Any]:
    return [instance for instance in INSTANCES if left.is_valid(instance) != right.is_valid(instance)]


def ours(document: Any) -> Validator:
    written: Any = translated(document).document
    Draft202012Validator.check_schema(written)
    return Draft202012Validator(written)


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("schema", [*OLD.values(), *NEWER.values()], ids=[*OLD, *NEWER])
def test_a_schema_means_what_the_draft_says_that_it_names(schema: Any, draft: str) -> None:
    document = {"$schema": DRAFTS[draft], **schema}
    if "dependencies" in schema and draft.startswith("draft20"):
        return  # an annotation there, which is enforced nevertheless
    if draft == "draft4" and "exclusiveMinimum" in schema:
        with pytest.raises(InvalidGrammar, match="must be a boolean"):
            translated(document)
        return
    if draft == "draft2020-12" and isinstance(schema.get("items"), list):
        with pytest.raises(InvalidGrammar, match="items"):
            translated(document)
        return
    assert different(VALIDATORS[draft](document), ours(document)) == []


@pytest.mark.parametrize("schema", BOOLEAN.values(), ids=BOOLEAN)
def test_boolean_bounds_make_the_others_exclusive(schema: Any) -> None:
    assert different(Draft4Validator(schema), ours(schema)) == []
    assert different(Draft4Validator(schema), ours({"$schema": DRAFTS["draft4"], **schema})) == []
    with pytest.raises(InvalidGrammar, match="must be a number"):
        translated({"$schema": DRAFTS["draft6"], **schema})


@pytest.mark.parametrize("schema", [*OLD.values(), *NEWER.values()], ids=[*OLD, *NEWER])
def test_old_forms_are_read_where_no_dialect_is_named(schema: Any) -> None:
    draft = "draft2019-09" if "$recursiveRef" in str(schema) else "draft2020-12"
    if schema in OLD.values() and "$ref" not in schema:
        draft = "draft7"  # 2020-12 has another reading of assertions beside a reference only
    assert different(VALIDATORS[draft](schema), ours(schema)) == []


def test_what_stands_beside_a_reference_is_applied_where_no_dialect_is_named() -> None:
    schema: Any = {"$ref": "#/definitions/a", "minimum": 3, "definitions": SHARED}
    assert [value for value in (1, 3, "a") if ours(schema).is_valid(value)] == [3]
    assert [value for value in (1, 3, "a") if ours({"$schema": DRAFTS["draft7"], **schema}).is_valid(value)] == [1, 3]


@pytest.mark.parametrize(
    ("schema", "accepted"),
    [
        ({"type": "string", "nullable": True}, ["a", None]),
        ({"type": "string", "nullable": False}, ["a"]),
        ({"type": ["string", "null"], "nullable": True}, ["a", None]),
        ({"type": "string", "enum": ["a", "b"], "nullable": True}, ["a"]),
        ({"type": "string", "enum": ["a", None], "nullable": True}, ["a", None]),
        ({"enum": ["a"], "nullable": True}, ["a"]),
        ({"nullable": True}, ["a", None, 1]),
        ({"allOf": [{"type": "string"}], "nullable": True}, ["a"]),
        ({"$ref": "#/components/schemas/a", "nullable": True, "components": {"schemas": {"a": {"type": "string"}}}}, ["a"]),
    ],
)
def test_nullable_adds_null_to_a_type_beside_it(schema: Any, accepted: list[Any]) -> None:
    """As version 3.0.3 of OpenAPI clarifies."""
    assert [value for value in ("a", None, 1) if ours(schema).is_valid(value)] == accepted


def test_a_discriminator_changes_nothing() -> None:
    mapped: dict[str, Any] = {"discriminator": {"propertyName": "k", "mapping": {"x": "#/$defs/a"}}}
    schema: Any = {"oneOf": [{"$ref": "#/$defs/a"}, {"type": "string"}], "$defs": {"a": {"required": ["k"], "type": "object"}}}
    assert different(ours(schema), ours({**schema, **mapped})) == []
    assert translated({**schema, **mapped}).warnings == ()


def test_a_schema_inside_another_may_be_of_another_dialect() -> None:
    inner: Any = {"$schema": DRAFTS["draft7"], "items": [{"$ref": "#/$defs/a", "type": "null"}]}
    schema: Any = {"$schema": DRAFTS["draft2020-12"], "items": inner, "$defs": {"a": {"type": "integer"}}}
    assert translated(schema).document == {"items": {"prefixItems": [{"$ref": "#/$defs/a"}]}, "$defs": {"a": {"type": "integer"}}}


@pytest.mark.parametrize("uri", ["http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/hyper-schema#"])
def test_a_dialect_is_known_by_all_its_addresses(uri: str) -> None:
    assert translated({"$schema": uri, "$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": {}}}).document == {
        "$ref": "#/definitions/a",
        "definitions": {"a": {}},
    }


def test_one_property_on_which_two_keywords_depend() -> None:
    both: Any = {
        "dependencies": {"a": ["b"], "b": {"maxProperties": 2}},
        "dependentRequired": {"a": ["cc"]},
        "dependentSchemas": {"cc": False},
    }
    assert translated(both).document == {
        "dependentRequired": {"a": ["b", "cc"]},
        "dependentSchemas": {"b": {"maxProperties": 2}, "cc": False},
    }
    with pytest.raises(UnsupportedGrammar):
        translated({"dependencies": {"a": {}}, "dependentSchemas": {"a": {}}})


def test_contains_of_2019_09_is_refused_where_what_it_evaluates_counts() -> None:
    schema: Any = {"allOf": [{"contains": {"type": "integer"}}], "unevaluatedItems": False}
    with pytest.raises(UnsupportedGrammar) as caught:
        translated({"$schema": DRAFTS["draft2019-09"], **schema})
    assert caught.value.pointer == "/allOf/0/contains"
    assert translated({"$schema": DRAFTS["draft2020-12"], **schema})
    assert translated({"$schema": DRAFTS["draft2019-09"], "contains": True})


def test_the_items_of_an_array_have_one_form() -> None:
    with pytest.raises(InvalidGrammar):
        translated({"prefixItems": [True], "items": [True]})


def test_references_of_two_kinds_stand_beside_each_other() -> None:
    schema: Any = {"$dynamicAnchor": "a", "anyOf": [{"$ref": "#/$defs/b", "$dynamicRef": "#a"}, True], "$defs": {"b": {"minimum": 3}}}
    assert translated(schema).document == {
        "anyOf": [{"$ref": "#/$defs/b", "allOf": [{"$ref": "#"}]}, True],
        "$defs": {"b": {"minimum": 3}},
    }


def _is_taken(document: Any) -> bool:
    """Whether no bound contradicts another, which is refused in any dialect."""
    try:
        return bool(translated(document))
    except InvalidGrammar:
        return False


documents = st.integers(0, 2**40).map(lambda seed: random_document(random.Random(seed))).filter(_is_taken)


@given(documents)
def test_a_schema_of_2020_12_is_its_own_translation(document: Any) -> None:
    assert translated(document).document is document


@given(documents)
def test_random_schemas_mean_the_same_in_older_words(document: Any) -> None:
    assert different(Draft202012Validator(document), ours(_older(document))) == []


def _older(schema: Any) -> Any:
    """The schema with array `items` and `dependencies` instead of what replaced them, where it has the newer words."""
    if isinstance(schema, list):
        return [_older(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: _older(value) for name, value in schema.items()}
    if "prefixItems" in copy:
        rest = copy.pop("items", None)
        copy["items"] = copy.pop("prefixItems")
        if rest is not None:
            copy["additionalItems"] = rest
    schemas, names = copy.get("dependentSchemas", {}), copy.get("dependentRequired", {})
    if not (schemas or names) or schemas.keys() & names.keys():
        return copy
    kept = {keyword: value for keyword, value in copy.items() if keyword not in ("dependentSchemas", "dependentRequired")}
    return {**kept, "dependencies": {**schemas, **names}}
