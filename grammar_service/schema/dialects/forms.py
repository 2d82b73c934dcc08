"""Is it a schema of its dialect at all? The meta-schemas' rules, in linear time."""

from __future__ import annotations

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.schema.dialects.dialect import OF_DRAFT_03, Dialect
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, is_annotation
from grammar_service.schema.pointer import join
from grammar_service.schema.shape import check_bounds, fault_of, name_of

_BOUNDS = frozenset({"exclusiveMinimum", "exclusiveMaximum"})


def check_shape(pointer: str, schema: Json, dialect: Dialect) -> None:
    """Of one schema, not of those below it.

    Raises:
        InvalidGrammar: a value has a wrong form; with the pointer of its keyword.
        UnsupportedGrammar: a keyword of draft-03.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise InvalidGrammar(f"a schema must be an object or a boolean, not {name_of(schema)}", pointer)
    for keyword in schema:
        if dialect.reads(keyword, schema) or is_annotation(keyword):
            if keyword in OF_DRAFT_03:
                raise UnsupportedGrammar(f"`{keyword}` is a keyword of draft-03, which is not supported", join(pointer, keyword))
            if (wanted := _fault_of(keyword, schema, dialect)) is not None:
                raise InvalidGrammar(f"`{keyword}` must be {wanted}", join(pointer, keyword))
    if not (dialect.lone_ref and "$ref" in schema):
        check_bounds(schema, pointer)


def _fault_of(keyword: str, schema: Schema, dialect: Dialect) -> str | None:
    """What a keyword's value must be, None where it is."""
    value = schema[keyword]
    if keyword in _BOUNDS:
        holds = dialect.flags_bounds if isinstance(value, bool) else dialect.names_bounds and fault_of(keyword, value) is None
        wanted = "a number" if dialect.names_bounds else "a boolean"
    elif keyword == "items" and isinstance(value, list):
        wanted = "an object or a boolean (`prefixItems` has the items of an array)"
        holds = "additionalItems" in dialect.known and "prefixItems" not in schema
    elif keyword == "additionalItems":
        wanted, holds = "an object or a boolean", isinstance(value, (dict, bool))
    elif keyword == "dependencies":
        wanted, holds = "an object of schemas and arrays of strings", _is_dependencies(value)
    elif keyword == "$recursiveRef":
        wanted, holds = '"#"', value == "#"
    elif keyword in ("nullable", "$recursiveAnchor"):
        wanted, holds = "a boolean", isinstance(value, bool)
    else:
        return fault_of(keyword, value)
    return None if holds else wanted


def _is_dependencies(value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(names, (dict, bool)) or fault_of("required", names) is None for names in value.values())
