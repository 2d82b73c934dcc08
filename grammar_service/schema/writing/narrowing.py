"""A rewrite without the numbers that no backend can write, where it has others: every value that is left, the rewrite allows too.

* Multiples without a lower bound are not negative, as in the normal form of closed schemas.
* Backends compute bounds of many digits as floats, some widening them: such a bound is moved inwards to the nearest float. So of
  `minimum: -9223372036854775808` the lowest 1,024 numbers are lost.
* None enforces bounds as far out as ±1.7e308, which stand for "any number" where floats are meant: they come near, too.

A rewrite has no negation, in which a narrower part would make the whole wider.
"""

from __future__ import annotations

import math

from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, mapped

_FARTHEST = 2**63 - 1024
"""The largest float below 2⁶³; at 2⁶³ itself libraries overflow."""
_FARTHEST_WRITTEN = 2**63 - 2048
"""The same of those that a schema writes as floats, of which libraries read the last digit differently."""
_LOWER, _UPPER = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")


def narrowed(schema: Json) -> Json:
    """The narrower form of a rewrite, or of a part of one."""
    if not isinstance(schema, dict):
        return schema
    narrow = mapped(schema, narrowed)
    _bound_multiples(narrow)
    _round_bounds(narrow)
    return narrow


def _bound_multiples(schema: Schema) -> None:
    if "multipleOf" not in schema or any(keyword in schema for keyword in _LOWER):
        return
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    if most is None or (isinstance(most, (int, float)) and (most > 0 or (most == 0 and "maximum" in schema))):
        schema["minimum"] = 0


def _round_bounds(schema: Schema) -> None:
    """Leaves both as they are where nothing would be left between them."""
    bounds = {keyword: bound for keyword in (*_LOWER, *_UPPER) if isinstance(bound := schema.get(keyword), (int, float))}
    rounded = {keyword: _inwards(bound, 1 if keyword in _LOWER else -1) for keyword, bound in bounds.items()}
    low = max((bound for keyword, bound in rounded.items() if keyword in _LOWER), default=-_FARTHEST)
    high = min((bound for keyword, bound in rounded.items() if keyword in _UPPER), default=_FARTHEST)
    if low < high:
        schema.update(rounded)


def _inwards(bound: int | float, sign: int) -> int | float:
    """The nearest float that is not below a lower bound (`sign` 1), or not above an upper one; as a whole number where it is moved."""
    farthest = _FARTHEST if isinstance(bound, int) else _FARTHEST_WRITTEN
    if sign * bound <= -farthest:
        return -sign * farthest
    if isinstance(bound, float) or bound >= _FARTHEST or bound <= -_FARTHEST:
        return bound
    near = int(float(bound))
    return near if sign * (near - bound) >= 0 else int(math.nextafter(float(bound), sign * math.inf))
