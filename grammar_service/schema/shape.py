"""Which values keywords may have: the meta-schema's rules in linear time, since a generic validator takes seconds on hostile input."""

from __future__ import annotations

from collections.abc import Callable

from grammar_service.errors import InvalidGrammar
from grammar_service.schema.json_text import Json, equality_text
from grammar_service.schema.keywords import LIST_OF_SUBSCHEMAS, MAP_OF_SUBSCHEMAS, ONE_SUBSCHEMA, Schema
from grammar_service.schema.pointer import join

_BOUNDS = {"minLength": "maxLength", "minItems": "maxItems", "minProperties": "maxProperties", "minimum": "maximum"}
TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})


def fault_of(keyword: str, value: Json) -> str | None:
    """What a keyword's value must be, None where it is."""
    if keyword in ONE_SUBSCHEMA:
        wanted, holds = "an object or a boolean", isinstance(value, (dict, bool))
    elif keyword in LIST_OF_SUBSCHEMAS:
        wanted, holds = "a non-empty array of schemas", isinstance(value, list) and bool(value)
    elif keyword in MAP_OF_SUBSCHEMAS:
        wanted, holds = "an object of schemas", isinstance(value, dict)
    elif keyword in _FORMS:
        wanted, test = _FORMS[keyword]
        holds = test(value)
    else:
        return None
    if holds:
        return None
    return f"{wanted}{_unknown_type(value)}" if keyword == "type" else wanted


def _unknown_type(value: Json) -> str:
    """Its name, for who reads the message."""
    named = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str) and item not in TYPES]
    return f", and {named[0][:40]!r} is none" if named else ""


def check_bounds(schema: Schema, pointer: str) -> None:
    """Raise InvalidGrammar with the JSON pointer of a bound that is above its counterpart."""
    for low, high in _BOUNDS.items():
        if low not in schema or high not in schema:
            continue
        least, most = schema[low], schema[high]
        if isinstance(least, (int, float)) and isinstance(most, (int, float)) and least > most:
            raise InvalidGrammar(f"`{low}` is greater than `{high}`: nothing matches", join(pointer, low))


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Json) -> bool:
    return _is_number(value) and float(str(value)).is_integer() and float(str(value)) >= 0


def _is_names(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len({str(item) for item in value}) == len(value)


def _is_type(value: Json) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _is_names(value) and bool(value) and isinstance(value, list) and all(item in TYPES for item in value)


def _is_enum(value: Json) -> bool:
    """Without values, too: that should not be, but may (Validation, 6.1.2)."""
    if not isinstance(value, list):
        return False
    texts = {item for item in value if isinstance(item, str)}
    others = [equality_text(item) for item in value if not isinstance(item, str)]
    return len(texts) + len(set(others)) == len(value)


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_names_by_name(value: Json) -> bool:
    return isinstance(value, dict) and all(_is_names(names) for names in value.values())


def name_of(value: Json) -> str:
    return {list: "an array", str: "a string", type(None): "null"}.get(type(value), "a number")


_Form = tuple[str, Callable[[Json], bool]]
_COUNT: _Form = ("a non-negative integer", _is_count)
_NUMBER: _Form = ("a number", _is_number)
_TEXT: _Form = ("a string", _is_text)
_NAMES: _Form = ("an array of different strings", _is_names)
_FORMS: dict[str, _Form] = {
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("minContains", "maxContains"), _COUNT),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("pattern", "format", "$ref", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor"), _TEXT),
    "uniqueItems": ("a boolean", lambda value: isinstance(value, bool)),
    "multipleOf": ("a number above 0", lambda value: _is_number(value) and float(str(value)) > 0),
    "required": _NAMES,
    "dependentRequired": ("an object of arrays of different strings", _is_names_by_name),
    "type": ("a JSON type or a non-empty array of different ones", _is_type),
    "enum": ("an array of different values", _is_enum),
}
