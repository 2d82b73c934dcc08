"""The direct subschemas of a schema, by the keywords of its dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from grammar_service.schema.dialects.dialect import Dialect
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import LIST_OF_SUBSCHEMAS, ONE_SUBSCHEMA, Schema


class Part(NamedTuple):
    """A subschema: the keyword that it stands under, the one that 2020-12 has for that, and its place there, None where it is the
    keyword's own value."""

    keyword: str
    ours: str
    step: str | int | None
    schema: Json


def parts(schema: Schema, dialect: Dialect) -> Iterator[Part]:
    """All of them, in their order. Malformed values have none."""
    for keyword in schema:
        if keyword in dialect.applicators and dialect.reads(keyword, schema):
            yield from parts_of(keyword, schema)


def parts_of(keyword: str, schema: Schema) -> Iterator[Part]:
    """Those under one keyword that the dialect reads. `additionalItems` says nothing without an array of `items`."""
    value = schema[keyword]
    if keyword == "additionalItems":
        if isinstance(schema.get("items"), list):
            yield Part(keyword, "items", None, value)
    elif keyword == "items" and isinstance(value, list):
        yield from (Part(keyword, "prefixItems", index, item) for index, item in enumerate(value))
    elif keyword in ONE_SUBSCHEMA:
        yield Part(keyword, keyword, None, value)
    elif keyword in LIST_OF_SUBSCHEMAS and isinstance(value, list):
        yield from (Part(keyword, keyword, index, item) for index, item in enumerate(value))
    elif keyword == "dependencies" and isinstance(value, dict):
        yield from (Part(keyword, "dependentSchemas", name, item) for name, item in value.items() if not isinstance(item, list))
    elif isinstance(value, dict):
        yield from (Part(keyword, keyword, name, member) for name, member in value.items())
