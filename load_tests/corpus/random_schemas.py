"""Random JSON Schemas that have something to guard: names that the schema does not list, and items of which none may come twice."""

from __future__ import annotations

from random import Random
from typing import Any

Schema = dict[str, Any]
_SCALARS: tuple[Schema, ...] = ({"type": "integer"}, {"type": "boolean"}, {"type": "null"}, {"type": "string"}, {"enum": ["a", "b", 1]})
_ITEMS: tuple[Schema, ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "string", "pattern": "^[ab]+"},
    {"enum": ["a", "b", "ab", "abb", "ba", "1", ""]},
)
_BOUNDED: tuple[Schema, ...] = (
    {"type": "string", "maxLength": 2},
    {"type": "string", "pattern": "^[ab]{1,2}$"},
    {"type": "string", "pattern": "^(a[ab]?|b{1,3})$"},
    {"type": "string", "minLength": 1, "maxLength": 40},
)
"""Strings that may run out, which an array may have where it has nothing else."""
_PATTERNS = ("^a", "b", "^[ab]+$", "^x-")


def random_schema(chance: Random, depth: int = 3) -> Schema:
    """Of an object; deeper ones are as likely objects as anything else."""
    return _object(chance, depth)


def random_record(chance: Random, depth: int = 2) -> Schema:
    """Of a closed object whose names begin alike."""
    names = chance.sample(["a", "b", "ab", "ba", "abb", "name", "na", ""], chance.randrange(2, 6))
    listed = {name: _part_of_record(chance, depth) for name in names}
    required = chance.sample(names, chance.randrange(len(names) + 1))
    return {"type": "object", "properties": listed, "required": required, "additionalProperties": False}


def _part_of_record(chance: Random, depth: int) -> Schema:
    if depth and chance.random() < 0.5:
        record = random_record(chance, depth - 1)
        return chance.choice((record, {"type": "array", "items": record, "maxItems": 2}, {"anyOf": [record, {"type": "null"}]}))
    return chance.choice(_SCALARS)


def _value(chance: Random, depth: int) -> Schema:
    if depth == 0:
        return chance.choice(_SCALARS)
    match chance.randrange(7):
        case 0 | 1:
            return _object(chance, depth)
        case 2:
            return {"type": "array", "items": _value(chance, depth - 1), "maxItems": chance.randrange(1, 4)}
        case 3:
            items = chance.choice(_BOUNDED) if chance.random() < 0.4 else _item(chance, depth)
            return {"type": "array", "items": items, "uniqueItems": True, "minItems": chance.randrange(4)}
        case 4:
            return {"anyOf": [_value(chance, depth - 1), {"type": "null"}]}
        case _:
            return chance.choice(_SCALARS)


def _item(chance: Random, depth: int) -> Schema:
    """Of an array where none may come twice."""
    match chance.randrange(6):
        case 0 | 1:
            return chance.choice(_ITEMS)
        case 2:
            return {"anyOf": [_item(chance, depth - 1), chance.choice(_SCALARS)]} if depth else {"type": ["boolean", "null"]}
        case 3:
            tuples = [_part(chance, depth - 1) for _ in range(chance.randrange(1, 4))]
            return {"type": "array", "prefixItems": tuples, "items": False, "minItems": chance.randrange(len(tuples) + 1)}
        case 4:
            return {"type": "array", "items": _part(chance, depth - 1), **chance.choice(({}, {"maxItems": 2}, {"uniqueItems": True}))}
    names = chance.sample(["a", "b", "ab", "ba"], chance.randrange(1, 4))
    listed = {name: _part(chance, depth - 1) for name in names}
    others = False if chance.random() < 0.8 else _part(chance, depth - 1)
    return {"type": "object", "properties": listed, "required": chance.sample(names, 1), "additionalProperties": others}


def _part(chance: Random, depth: int) -> Schema:
    return _item(chance, depth) if depth > 0 and chance.random() < 0.5 else chance.choice(_SCALARS)


def _object(chance: Random, depth: int) -> Schema:
    others = _value(chance, depth - 1)
    match chance.randrange(7):
        case 0:
            return {"type": "object"}
        case 5 | 6:
            return {"type": "object", "additionalProperties": others}
        case 1:
            return {"type": "object", "patternProperties": {chance.choice(_PATTERNS): others}, "additionalProperties": False}
        case 2:
            return {"type": "object", "additionalProperties": others, "maxProperties": chance.randrange(1, 5)}
        case 3:
            return {"type": "object", "additionalProperties": others, "minProperties": chance.randrange(1, 5)}
        case _:
            names = chance.sample(["a", "b", "ab", "ba"], 2)
            listed = {name: _value(chance, depth - 1) for name in names}
            return {"type": "object", "properties": listed, "required": names[:1], "additionalProperties": others}
