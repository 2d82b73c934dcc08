"""References of a tool's schema when that stands inside of another document, where `#` means another root."""

from __future__ import annotations

from typing import Any
from urllib.parse import urldefrag

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.dialects.dialect import UNNAMED, Dialect, dialect_named
from grammar_service.schema.keywords import MAP_OF_SUBSCHEMAS

_REFERENCES = ("$ref", "$dynamicRef")
_MAPS = MAP_OF_SUBSCHEMAS | {"dependencies"}
_DATA = frozenset({"const", "enum", "default", "example", "examples"})


def with_base(schema: dict[str, Any], base: str) -> dict[str, Any]:
    """A copy for the place that the reference `base` leads to; the same object, if it refers to nothing.

    References relative to an `$id` of the schema's own stay as they are.
    """
    return _rebased(schema, base, _dialect(schema)) if _refers(schema) else schema


def _rebased(schema: dict[str, Any], base: str, dialect: Dialect) -> dict[str, Any]:
    if _is_resource(schema, dialect):
        return schema
    copied: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _REFERENCES and isinstance(value, str):
            copied[keyword] = f"{base}{value[1:]}" if value == "#" or value.startswith("#/") else value
        elif not _recurs(keyword, value, dialect):
            copied[keyword] = value if keyword in _DATA else _inside(value, keyword in _MAPS, base, dialect)
    if any(_recurs(keyword, value, dialect) for keyword, value in schema.items()):
        return _with_reference(copied, base)
    return copied


def _with_reference(schema: dict[str, Any], base: str) -> dict[str, Any]:
    if "$ref" not in schema:
        return {**schema, "$ref": base}
    others = schema.get("allOf", [])
    return {**schema, "allOf": [*others, {"$ref": base}]} if isinstance(others, list) else schema  # which will be refused


def _recurs(keyword: str, value: Any, dialect: Dialect) -> bool:
    """Whether this means the root, as `$recursiveRef` does in a schema without a name."""
    return keyword == "$recursiveRef" and keyword in dialect.known and value == "#"


def _inside(value: Any, is_map: bool, base: str, dialect: Dialect) -> Any:
    if isinstance(value, list):
        return [_inside(item, False, base, dialect) for item in value]
    if not isinstance(value, dict):
        return value
    if is_map:
        return {name: _inside(member, False, base, dialect) for name, member in value.items()}
    return _rebased(value, base, dialect)


def _dialect(schema: dict[str, Any]) -> Dialect:
    """That of a schema which others will refuse, if they do not know it, is of no account."""
    try:
        return dialect_named(str(schema.get("$schema"))) or UNNAMED
    except UnsupportedGrammar:
        return UNNAMED


def _is_resource(schema: dict[str, Any], dialect: Dialect) -> bool:
    """Whether `#` means this schema inside of it (see `schema.dialects.names`)."""
    word = "$id" if "$id" in schema else "id"
    name = schema.get(word)
    read = dialect.reads(word, schema) and (word == "$id" or dialect.is_certain)
    return read and isinstance(name, str) and bool(urldefrag(name)[0])


def _refers(node: Any) -> bool:
    if isinstance(node, dict):
        return not node.keys().isdisjoint((*_REFERENCES, "$recursiveRef")) or any(map(_refers, node.values()))
    return isinstance(node, list) and any(map(_refers, node))
