"""The vocabulary of JSON Schema 2020-12: where subschemas are, which keywords assert nothing, which belong to which type."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from grammar_service.schema.json_text import Json
from grammar_service.schema.pointer import join

Schema = dict[str, Json]

ONE_SUBSCHEMA = frozenset(
    {
        "additionalProperties",
        "propertyNames",
        "items",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedProperties",
        "unevaluatedItems",
        "contentSchema",
    }
)
LIST_OF_SUBSCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAP_OF_SUBSCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})

TEXT_ANNOTATIONS = frozenset({"title", "description", "$comment", "examples"})
"""Annotations that no grammar depends on and that a grammar key ignores."""

ASSERTS_NOTHING = TEXT_ANNOTATIONS | {
    "$schema",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "discriminator",
    "example",
    "externalDocs",
    "xml",
    "enumNames",
    "enumDescriptions",
    "markdownDescription",
}
"""Keywords that by JSON Schema 2020-12, or by OpenAPI, only describe. Names that begin with `x-` are alike."""

BY_TYPE: dict[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset(
        {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"}
    ),
    "object": frozenset(
        {
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
        }
    ),
}
"""Keywords that assert only about values of one type; integers go by "number"."""

IN_PLACE = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
"""Applicators that are about the same value as the schema they stand in."""

SEQUENCE = "sequence"
"""What a rewrite says of arrays that no keyword can (`schema.writing.sequences`); in a user's schema it is unknown, as any other name."""

ANY_ORDER = "anyOrder"
"""What is said of an object in a rewrite whose members come in any order; in a user's schema it is unknown."""

ANY_TYPE = frozenset({"type", "enum", "const", "$ref", "$defs", "definitions", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
IDENTIFIERS = frozenset({"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$recursiveRef", "$recursiveAnchor"})
KNOWN = ANY_TYPE | IDENTIFIERS | frozenset().union(*BY_TYPE.values())


def is_annotation(keyword: str) -> bool:
    return keyword in ASSERTS_NOTHING or keyword.startswith("x-")


def dict_at(schema: Schema, keyword: str) -> Schema:
    """What a keyword has by name, as `properties` does; nothing where it is missing, or no object."""
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def list_at(schema: Schema, keyword: str) -> list[Json]:
    """What a keyword lists, as `required` does; nothing where it is missing, or no array."""
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def subschemas(pointer: str, schema: Schema) -> Iterator[tuple[str, Json]]:
    """The direct subschemas of a schema with their pointers."""
    for keyword, value in schema.items():
        if keyword in ONE_SUBSCHEMA:
            yield join(pointer, keyword), value
        elif keyword in LIST_OF_SUBSCHEMAS and isinstance(value, list):
            for index, item in enumerate(value):
                yield join(pointer, keyword, index), item
        elif keyword in MAP_OF_SUBSCHEMAS and isinstance(value, dict):
            for name, member in value.items():
                yield join(pointer, keyword, name), member


def mapped(schema: Schema, change: Callable[[Json], Json]) -> Schema:
    """A copy of a schema, each direct subschema replaced by what `change` makes of it."""
    copy = dict(schema)
    # A loop, since comprehensions take frames of their own where `change` recurses.
    for keyword, value in schema.items():
        if keyword in ONE_SUBSCHEMA:
            copy[keyword] = change(value)
        elif keyword in LIST_OF_SUBSCHEMAS and isinstance(value, list):
            copy[keyword] = [change(item) for item in value]
        elif keyword in MAP_OF_SUBSCHEMAS and isinstance(value, dict):
            copy[keyword] = {name: change(member) for name, member in value.items()}
    return copy


def mapped_at(pointer: str, schema: Schema, change: Callable[[Json, str], Json]) -> Schema:
    """The same where `change` needs a subschema's pointer too; `pointer` is that of the schema."""
    pointers = (inner for inner, _ in subschemas(pointer, schema))
    return mapped(schema, lambda inner: change(inner, next(pointers)))


def walk(document: Json) -> Iterator[tuple[str, Json]]:
    """Every schema of a document with its pointer, parents first; no recursion."""
    waiting: list[tuple[str, Json]] = [("", document)]
    while waiting:
        pointer, schema = waiting.pop()
        yield pointer, schema
        if isinstance(schema, dict):
            inner = list(subschemas(pointer, schema))
            waiting.extend(reversed(inner))
