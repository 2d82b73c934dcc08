"""Random schemas and random instances that have a chance to be valid for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NAMES = ["a", "b", "cc", "d\t"]
PATTERNS = ["^a", "b$", "c+", "^[a-c]{1,2}$", "1|a"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object", ["integer", "array"], ["object", "null"]]
SCALARS = [None, True, False, -3, -1, 0, 1, 2, 3, 6, 0.5, 1.0, -2.5, "", "a", "ab", "cc", "b1"]
SHARED = [{"type": "string", "minLength": 2}, {"properties": {"a": {"type": "integer"}}, "required": ["b"]}, {"maximum": 3}, True]


def random_instance(choose: random.Random, depth: int = 2) -> Any:
    kind = choose.random()
    if depth == 0 or kind < 0.5:
        return choose.choice(SCALARS)
    size = choose.randrange(4)
    if kind < 0.7:
        return [random_instance(choose, depth - 1) for _ in range(size)]
    return {name: random_instance(choose, depth - 1) for name in choose.sample(NAMES, size)}


def random_document(choose: random.Random) -> dict[str, Any]:
    """A schema with a definition that it may refer to."""
    return {**_keywords(choose, 2, list(_MAKERS)), "$defs": {"shared": choose.choice(SHARED)}}


def _schema(choose: random.Random, depth: int) -> Any:
    if depth == 0 or choose.random() < 0.15:
        return choose.random() < 0.6 if choose.random() < 0.5 else _keywords(choose, 0, _FLAT)
    return _keywords(choose, depth, list(_MAKERS))


def _keywords(choose: random.Random, depth: int, known: list[str]) -> dict[str, Any]:
    words = choose.sample(known, choose.choice([1, 1, 2, 2, 3, 4]))
    return {word: _MAKERS[word](choose, max(depth - 1, 0)) for word in words}


_Make = Callable[[random.Random, int], Any]


def _pick(values: list[Any]) -> _Make:
    return lambda choose, _: choose.choice(values)


def _names(choose: random.Random, _: int) -> list[str]:
    return choose.sample(NAMES, choose.randrange(3))


def _list(choose: random.Random, depth: int) -> list[Any]:
    return [_schema(choose, depth) for _ in range(choose.choice([1, 2, 2, 3]))]


def _map(keys: list[str]) -> _Make:
    return lambda choose, depth: {key: _schema(choose, depth) for key in choose.sample(keys, choose.choice([1, 1, 2]))}


_COUNT, _CONST = _pick([0, 1, 2]), lambda choose, _: random_instance(choose)
_MAKERS: dict[str, _Make] = {
    "type": _pick(TYPES),
    "enum": lambda choose, _: choose.sample([value for value in SCALARS if value is not True and value != 1], 3),
    "const": _CONST,
    "minimum": _pick([-2, 0, 1, 4]),
    "exclusiveMaximum": _pick([0, 2.5, 3]),
    "multipleOf": _pick([1, 2, 3, 0.5]),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _pick(PATTERNS),
    "required": _names,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "dependentRequired": lambda choose, depth: {name: _names(choose, depth) for name in _names(choose, depth)},
    "$ref": _pick(["#/$defs/shared"]),
    "items": _schema,
    "prefixItems": _list,
    "uniqueItems": _pick([True, False]),
    "contains": _schema,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "properties": _map(NAMES),
    "patternProperties": _map(PATTERNS),
    "additionalProperties": _schema,
    "propertyNames": _pick([{"maxLength": 1}, {"enum": ["a", "cc"]}, {"pattern": "^a"}, {"not": {"const": "b"}}]),
    "dependentSchemas": _map(NAMES),
    "allOf": _list,
    "anyOf": _list,
    "oneOf": _list,
    "not": _schema,
    "if": _schema,
    "then": _schema,
    "else": _schema,
    "unevaluatedProperties": _schema,
    "unevaluatedItems": _schema,
}
_FLAT = list(_MAKERS)[:16]
