"""Short names for the schemas that the families are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]


def record(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Schema:
    """A closed object, required members first."""
    members = {**required, **(optional or {})}
    return {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}


def text(most: int | None = None, least: int | None = None) -> Schema:
    bounds = {"minLength": least, "maxLength": most}
    return {"type": "string", **{name: bound for name, bound in bounds.items() if bound is not None}}


def spelled(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


def formatted(name: str) -> Schema:
    return {"type": "string", "format": name}


def one_of(values: Iterable[Any]) -> Schema:
    return {"enum": list(values)}


def many(items: Schema, least: int | None = None, most: int | None = None) -> Schema:
    bounds = {"minItems": least, "maxItems": most}
    return {"type": "array", "items": items, **{name: bound for name, bound in bounds.items() if bound is not None}}


def whole(least: int | None = None, most: int | None = None) -> Schema:
    return _bounded("integer", least, most)


def number(least: float | None = None, most: float | None = None) -> Schema:
    return _bounded("number", least, most)


def flag() -> Schema:
    return {"type": "boolean"}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def refer(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def names(schema: Schema) -> Schema:
    """An object of any member names."""
    return {"type": "object", "additionalProperties": schema}


def unspelled(schema: Any) -> Any:
    """A copy in which texts may be spelled anyhow: without `pattern` and `format`."""
    if isinstance(schema, list):
        return [unspelled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: unspelled(value) for name, value in schema.items() if name not in ("pattern", "format")}


def _bounded(kind: str, least: float | None, most: float | None) -> Schema:
    bounds = {"minimum": least, "maximum": most}
    return {"type": kind, **{name: bound for name, bound in bounds.items() if bound is not None}}
