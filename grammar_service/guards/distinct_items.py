"""Items of which it is known whether there is one more, so that an array need not have one twice."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from grammar_service.errors import GrammarError
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.unending import never_runs_out
from grammar_service.schema.keywords import Schema
from grammar_service.schema.normal_form.normal import types_of
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References

_STRINGS = frozenset({"type", "minLength", "pattern"})
_NUMBERS = frozenset({"type"})
_WHOLE = frozenset({"type", "minimum", "exclusiveMinimum"})
_REASON = "`uniqueItems` is enforced in long arrays of listed strings, strings that need no end, and numbers without upper bound"


class Items(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the items of an array are, as far as it matters: whether its numbers are `whole`; `listed`: its strings, where it has no other
    items, sorted; else there is always one more. `form`: of items of any kind (`forms`)."""

    whole: bool = True
    listed: tuple[str, ...] | None = None
    form: int | None = None


def items_of(references: References, pointer: str, effort: Effort) -> Items | str:
    """Of the array at a pointer, or why it may run out of items, which are then not for a guard."""
    array = references.schemas[pointer]
    if not isinstance(array, dict) or "prefixItems" in array or not isinstance(array.get("items"), dict):
        return _REASON
    listed, others = set[str](), list[Schema]()
    for schema in _alternatives(references, join(pointer, "items")):
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list):
            listed.update(value for value in values if isinstance(value, str))
        if not _is_endless(schema, effort) and not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
            return _REASON
        others += [] if isinstance(values, list) else [schema]
    if not listed:
        return Items(whole=not any("number" in types_of(schema) for schema in others))
    least = array.get("minItems", 0)
    if others or not isinstance(least, int) or least > len(listed):
        return _REASON
    return Items(listed=tuple(sorted(listed)))


def _alternatives(references: References, start: str) -> Iterator[Schema]:
    """The schemas without branches and references that a schema comes to."""
    waiting, seen = [start], set[str]()
    while waiting:
        at = waiting.pop()
        schema = references.schemas[at]
        if at in seen or schema is False:
            continue
        seen.add(at)
        if not isinstance(schema, dict):
            yield {}
        elif "$ref" in schema and len(schema) == 1:
            waiting.append(references.target_of(at))
        elif isinstance(branches := schema.get("anyOf"), list) and len(schema) == 1:
            waiting += [join(at, "anyOf", index) for index in range(len(branches))]
        else:
            yield schema


def _is_endless(schema: Schema, effort: Effort) -> bool:
    """Whether a value that has begun can always become endlessly many others."""
    match types_of(schema):
        case ["string"]:
            return schema.keys() <= _STRINGS and _goes_on(schema.get("pattern"), effort)
        case ["integer"]:
            bounds = [schema[name] for name in ("minimum", "exclusiveMinimum") if name in schema]
            return schema.keys() <= _WHOLE and all(isinstance(bound, int) and bound >= 0 for bound in bounds)
        case ["number"]:
            return schema.keys() <= _NUMBERS
        case types:
            return schema.keys() == {"type"} and bool(types) and set(types) <= {"string", "integer", "number"}


def _goes_on(pattern: object, effort: Effort) -> bool:
    if not isinstance(pattern, str):
        return True
    try:
        return never_runs_out(StringSet.of_pattern(pattern, effort))
    except GrammarError:
        return False
