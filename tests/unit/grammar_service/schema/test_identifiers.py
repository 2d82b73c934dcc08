"""Names of schemas inside one document."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammar_service.schema.identifiers import with_pointers
from grammar_service.schema.json_schema import schema_of
from grammar_service.schema.keywords import walk

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
    written: Any = with_pointers(document, dict(walk(document)))
    before, after = Draft202012Validator(document), Draft202012Validator(written)
    assert [value for value in (1, "a", [1], ["a"], None) if before.is_valid(value) != after.is_valid(value)] == []
    assert schema_of(document).normal


def test_a_document_without_names_stays_as_it_is() -> None:
    document: Any = {"$id": "https://example.com", "$ref": "#/$defs/a", "$defs": {"a": {"enum": [{"$id": "data", "$anchor": "data"}]}}}
    assert with_pointers(document, dict(walk(document))) is document
