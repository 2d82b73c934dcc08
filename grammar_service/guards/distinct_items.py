"""Items of which it is known whether there is one more, so that an array need not have one twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.guards.forms import CountedStrings, Language
from grammar_service.regexes.counted import Beginnings
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.unending import never_runs_out
from grammar_service.schema.formats.known import FORMATS
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, list_at
from grammar_service.schema.normal_form.normal import types_of
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References

_STRINGS = frozenset({"type", "minLength", "pattern"})
STRING_KEYWORDS = _STRINGS | {"maxLength", "format", "allOf"}
_LONGEST = 2048
"""Characters of strings that have no pattern: each is a state."""
_NUMBERS = frozenset({"type"})
_WHOLE = frozenset({"type", "minimum", "exclusiveMinimum"})
_REASON = "`uniqueItems` is enforced in long arrays of strings that can be counted, and of numbers without upper bound"


class Items(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the items of an array are, as far as it matters: whether its numbers are `whole`; its `strings`, where it has no other items and
    they may run out; else there is always one more. `form`: of items of any kind (`forms`)."""

    whole: bool = True
    form: int | None = None
    strings: CountedStrings | None = None


def items_of(references: References, pointer: str, effort: Effort) -> Items | str:
    """Of the array at a pointer, or why it may run out of items, which are then not for a guard."""
    array = references.schemas[pointer]
    if not isinstance(array, dict) or "prefixItems" in array or not isinstance(array.get("items"), dict):
        return _REASON
    listed, others = set[str](), list[Schema]()
    alternatives = list(_alternatives(references, join(pointer, "items")))
    for schema in alternatives:
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list):
            listed.update(value for value in values if isinstance(value, str))
        if not _is_endless(schema, effort) and not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
            return _counted(alternatives, array.get("minItems", 0), effort)
        others += [] if isinstance(values, list) else [schema]
    if not listed:
        return Items(whole=not any("number" in types_of(schema) for schema in others))
    least = array.get("minItems", 0)
    if others:
        return _counted(alternatives, least, effort)
    return Items(strings=CountedStrings(tuple(sorted(listed)))) if isinstance(least, int) and least <= len(listed) else _REASON


def _counted(alternatives: list[Schema], least: Json, effort: Effort) -> Items | str:
    """Strings that may run out, each way that one begins."""
    try:
        sets = [strings_of(schema, effort) for schema in alternatives]
        strings = sets[0]
        for other in sets[1:]:
            strings = strings.union(other)
    except GrammarError:
        return _REASON
    if never_runs_out(strings):
        return Items()
    found = counted(strings)
    return Items(strings=found) if isinstance(least, int) and least <= found.count else _REASON


def counted(strings: StringSet) -> CountedStrings:
    size = Beginnings(strings.moves, strings.accepting).count(b"")
    return CountedStrings(language=Language(strings.moves, tuple(sorted(strings.accepting)), size))


def strings_of(schema: Schema, effort: Effort) -> StringSet:
    """Raises GrammarError: they are too many to be told, or not all of its values are strings."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list):
        if schema.keys() - {"enum", "const", "type"} or not all(isinstance(value, str) for value in values):
            raise UnsupportedGrammar(_REASON)
        return StringSet.of_strings([value for value in values if isinstance(value, str)])
    if "type" not in schema:
        raise UnsupportedGrammar(_REASON)
    return _asserted(schema, effort)


def _asserted(schema: Schema, effort: Effort) -> StringSet:
    """The strings of which a schema, and those in its `allOf`, hold."""
    if schema.keys() - STRING_KEYWORDS or types_of(schema) not in ([], ["string"]):
        raise UnsupportedGrammar(_REASON)
    patterns = [schema["pattern"]] if "pattern" in schema else []
    sets = [StringSet.of_pattern(str(pattern), effort) for pattern in patterns]
    if "format" in schema:
        if (known := _of_format(str(schema["format"]))) is None:
            raise UnsupportedGrammar(_REASON)
        sets.append(known)
    sets += [_asserted(branch, effort) for branch in list_at(schema, "allOf") if isinstance(branch, dict)]
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if isinstance(least, int) and isinstance(most, int) and not sets and least <= most <= _LONGEST:
        return _of_lengths(least, most)
    if least or most is not None:
        sets.append(StringSet.of_lengths(int(str(least)), None if most is None else int(str(most))))
    return StringSet.all_of(sets)


@lru_cache(maxsize=len(FORMATS))
def _of_format(name: str) -> StringSet | None:
    """None: its automaton is too large, or there is no such format. No schema pays for it, since there are few."""
    if name not in FORMATS or FORMATS[name].never_exhausted:
        return None
    try:
        return StringSet.of_pattern(FORMATS[name].pattern)
    except GrammarError:
        return None


def _of_lengths(least: int, most: int) -> StringSet:
    """However long they are."""
    moves = [((0, length + 1),) for length in range(most + 1)]
    return StringSet((*moves, ((0, most + 1),)), frozenset(range(least, most + 1)))


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
            return schema.keys() <= STRING_KEYWORDS and is_never_exhausted(schema, effort)
        case ["integer"]:
            bounds = [schema[name] for name in ("minimum", "exclusiveMinimum") if name in schema]
            return schema.keys() <= _WHOLE and all(isinstance(bound, int) and bound >= 0 for bound in bounds)
        case ["number"]:
            return schema.keys() <= _NUMBERS
        case types:
            return schema.keys() == {"type"} and bool(types) and set(types) <= {"string", "integer", "number"}


def is_never_exhausted(schema: Schema, effort: Effort) -> bool:
    """Whether a string of a schema that has begun can always become endlessly many others. In doubt it cannot."""
    if "maxLength" in schema or "allOf" in schema or {"pattern", "format"} <= schema.keys():
        return False
    if "format" in schema:
        name = str(schema["format"])
        strings = _of_format(name)
        return (name in FORMATS and FORMATS[name].never_exhausted) or (strings is not None and never_runs_out(strings))
    try:
        return "pattern" not in schema or never_runs_out(StringSet.of_pattern(str(schema["pattern"]), effort))
    except GrammarError:
        return False
