"""Names of schemas inside one document."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.dialects.translation import translated
from grammar_service.schema.json_schema import schema_of

INTEGER = {"type": "integer"}
DOCUMENTS: dict[str, Any] = {
    "an anchor": {"$ref": "#a", "$defs": {"x": {"$anchor": "a", **INTEGER}}},
    "a resource": {"$id": "https://example.com/root", "$ref": "item", "$defs": {"x": {"$id": "item", **INTEGER}}},
    "an anchor in a resource": {"$ref": "urn:x:item#a", "$defs": {"x": {"$id": "urn:x:item", "$defs": {"y": {"$anchor": "a", **INTEGER}}}}},
    "a pointer in a resource": {
        "$ref": "item#/$defs/y",
        "$id": "https://e.com/r/",
        "$defs": {"x": {"$id": "item", "$defs": {"y": INTEGER}}},
    },
    "a pointer from inside a resource": {
        "$id": "https://example.com/",
        "$ref": "item",
        "$defs": {"x": {"$id": "item", "$ref": "#/$defs/y", "$defs": {"y": INTEGER}}, "y": {"type": "string"}},
    },
    "the root by its name": {"$id": "urn:x:tree", "type": ["integer", "array"], "items": {"$ref": "urn:x:tree"}},
    "a dynamic anchor of the root": {
        "$id": "https://example.com/root",
        "$ref": "list",
        "$defs": {
            "x": {"$dynamicAnchor": "item", **INTEGER},
            "list": {"$id": "list", "anyOf": [{"$dynamicRef": "#item"}], "$defs": {"y": {"$dynamicAnchor": "item", "type": "string"}}},
        },
    },
    "a dynamic reference by pointer": {"$dynamicRef": "#/$defs/x", "$defs": {"x": INTEGER}},
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_references_by_name_become_pointers_to_the_same_schema(document: Any) -> None:
    written: Any = translated(document).document
    before, after = Draft202012Validator(document), Draft202012Validator(written)
    assert [value for value in (1, "a", [1], ["a"], None) if before.is_valid(value) != after.is_valid(value)] == []
    assert schema_of(document).normal


def test_a_document_without_names_stays_as_it_is() -> None:
    document: Any = {"$ref": "#/$defs/a", "$defs": {"a": {"enum": [{"$id": "data", "$anchor": "data"}]}}}
    assert translated(document).document is document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"$ref": "other.json"}, "nothing is fetched"),
        ({"$ref": "#a"}, "no anchor"),
        ({"$ref": "#a", "$defs": {"x": {"$anchor": "a"}, "y": {"$anchor": "a"}}}, "several anchors"),
        ({"$ref": "a", "$id": "https://e.com/", "$defs": {"x": {"$id": "a"}, "y": {"$id": "a"}}}, "several schemas have this name"),
    ],
)
def test_a_name_of_nothing_or_of_several_schemas_is_refused_where_it_is_used(document: Any, message: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=message) as caught:
        translated(document)
    assert caught.value.pointer == "/$ref"
    assert translated({name: value for name, value in document.items() if name != "$ref"})
