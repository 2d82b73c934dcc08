"""Can two branches of a `oneOf` ever match the same value? Where they provably cannot, `oneOf` is `anyOf`."""

from __future__ import annotations

from grammar_service.schema.json_text import Json, equality_text
from grammar_service.schema.keywords import Schema, dict_at, list_at
from grammar_service.schema.references import References

_ALL = frozenset({"null", "boolean", "object", "array", "number", "string"})


def are_disjoint(branches: list[Json], references: References) -> bool:
    """True only where it is certain: by type, by enumerated values, or by one required property of enumerated values."""
    schemas = [references.resolved(branch) for branch in branches]
    if not all(isinstance(schema, dict) for schema in schemas):
        return False
    known = [schema for schema in schemas if isinstance(schema, dict)]
    for kind in _ALL:
        members = [schema for schema in known if kind in _types(schema)]
        if len(members) > 1 and not (_different(members) or (kind == "object" and _discriminated(members, references))):
            return False
    return True


def type_of(value: Json) -> str:
    """The JSON type of a value; integers are "number"."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "null"


def values_of(schema: Json) -> list[Json] | None:
    """The values that `const` or `enum` leave, None without either."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _types(schema: Schema) -> frozenset[str]:
    values = values_of(schema)
    if values is not None:
        return frozenset(type_of(value) for value in values)
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    return frozenset("number" if name == "integer" else str(name) for name in names) or _ALL


def _different(schemas: list[Schema]) -> bool:
    seen: set[str] = set()
    for schema in schemas:
        values = values_of(schema)
        texts = {equality_text(value) for value in values} if values is not None else None
        if texts is None or texts & seen:
            return False
        seen |= texts
    return True


def _discriminated(schemas: list[Schema], references: References) -> bool:
    for name in list_at(schemas[0], "required"):
        members = [_member(schema, str(name), references) for schema in schemas]
        if _different([member for member in members if member is not None]) and None not in members:
            return True
    return False


def _member(schema: Schema, name: str, references: References) -> Schema | None:
    if name not in list_at(schema, "required"):
        return None
    member = references.resolved(dict_at(schema, "properties").get(name))
    return member if isinstance(member, dict) else None
