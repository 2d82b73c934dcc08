"""Where in a text arrays must have no item twice, and where objects may run out of names: by the names and items that lead there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.guards.distinct_items import Items, items_of
from grammar_service.guards.form_builder import ANYTHING, FormBuilder
from grammar_service.guards.forms import FREE, Form
from grammar_service.guards.open_objects import may_run_out
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import Recognizer
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import ANY_ORDER, Schema, dict_at, list_at, walk
from grammar_service.schema.normal_form.disjoint import type_of
from grammar_service.schema.normal_form.normal import types_of
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References

MOST_PLACES = 500
PATTERN_EFFORT = 100_000
"""Steps for all patterns of a document, up to 130 ms."""


class Members(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of an object whose members come in any order: those that it must have; `listed`: all that it can have, None: others too, of which
    there is always one more."""

    required: tuple[str, ...]
    listed: tuple[str, ...] | None


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a value: where its members are, those without a place of their own at `others`, and its items; `distinct`: no item comes twice.
    `loose`: an object there may run out of names; `members`: of one whose members come in any order."""

    names: dict[str, int] = {}
    others: int = FREE
    items: int = FREE
    distinct: Items | None = None
    loose: bool = False
    members: Members | None = None


class Guarded(NamedTuple):
    """Places, the root's first, none where nothing is asked for; the forms of items there."""

    places: tuple[Place, ...] = ()
    forms: tuple[Form, ...] = ()


def places_of(document: Json) -> Guarded:
    """Those of a schema document in normal form.

    Raises:
        UnsupportedGrammar: what is asked for depends on more than names, or could leave no next item.
    """
    schemas = dict(walk(document))
    unique = {pointer for pointer, schema in schemas.items() if isinstance(schema, dict) and schema.get("uniqueItems")}
    effort = Effort(PATTERN_EFFORT)
    unordered = {pointer for pointer, schema in schemas.items() if isinstance(schema, dict) and schema.get(ANY_ORDER)}
    loose = {pointer for pointer, schema in schemas.items() if isinstance(schema, dict) and may_run_out(schema, effort)}
    if not (unique or loose or unordered):
        return Guarded()
    places = _Places(References(schemas), unique, loose, unordered, effort)
    found = places.found()
    if places.sharing:
        raise UnsupportedGrammar("members in any order are not enforced where other objects may stand in the place", min(places.sharing))
    return found


def objects_sharing_places(document: Json, objects: set[str]) -> set[str]:
    """Those of the objects at these pointers of a document in normal form in whose place another one may stand. Raises as `places_of`."""
    places = _Places(References(dict(walk(document))), set(), set(), objects, Effort(PATTERN_EFFORT))
    if objects:
        places.found()
    return places.sharing


class _Places:
    """The subset construction: a place is the set of all schemas that the value there may have to satisfy one of. `sharing`: of the
    `unordered` objects those in whose place another one may stand."""

    def __init__(self, references: References, unique: set[str], loose: set[str], unordered: set[str], effort: Effort) -> None:
        self._references = references
        self._effort = effort
        self._loose = loose
        self._unordered = unordered
        self.sharing = set[str]()
        self._first_asking = join(min(unique), "uniqueItems") if unique else min(loose | unordered, default="")
        self._unique = references.leading_to(unique)
        self._asking = self._unique | references.leading_to(loose | unordered)
        self._numbers: dict[frozenset[str], int] = {}
        self._waiting: list[frozenset[str]] = []
        self._known_leaves: dict[str, set[str]] = {}
        self._recognizers: dict[str, Recognizer] = {}
        self._builder = FormBuilder(references, effort)

    def found(self) -> Guarded:
        self._number([""])
        places: list[Place] = []
        while len(places) < len(self._waiting):
            places.append(self._place(self._waiting[len(places)]))
        return Guarded(tuple(places), tuple(self._builder.forms))

    def _number(self, pointers: Iterable[str]) -> int:
        """Of the place where a value satisfies one of these schemas."""
        leaves = frozenset(leaf for pointer in pointers for leaf in self._leaves(pointer))
        if leaves.isdisjoint(self._asking):
            return FREE
        if leaves not in self._numbers:
            if len(self._waiting) == MOST_PLACES:
                raise UnsupportedGrammar("more combinations of schemas than are followed", self._first_asking)
            self._numbers[leaves] = len(self._waiting)
            self._waiting.append(leaves)
        return self._numbers[leaves]

    def _leaves(self, pointer: str) -> set[str]:
        """The schemas without branches and references that a schema comes to."""
        if pointer not in self._known_leaves:
            self._known_leaves[pointer] = self._found_leaves(pointer)
        return self._known_leaves[pointer]

    def _found_leaves(self, start: str) -> set[str]:
        leaves, seen, waiting = set[str](), set[str](), [start]
        while waiting:
            pointer = waiting.pop()
            if pointer in seen:
                continue
            seen.add(pointer)
            schema = self._schema(pointer)
            inner = self._same_value(pointer, schema) if isinstance(schema, dict) else []
            waiting += inner
            if not inner and schema is not False:
                leaves.add(pointer)
        return leaves

    def _same_value(self, pointer: str, schema: Schema) -> list[str]:
        inner = self._references.same_value(pointer)
        if inner and schema.get("uniqueItems"):
            raise UnsupportedGrammar("`uniqueItems` beside other schemas of the same array is not enforced", join(pointer, "uniqueItems"))
        return inner

    def _schema(self, pointer: str) -> Json:
        return True if pointer == ANYTHING else self._references.schemas[pointer]

    def _place(self, leaves: frozenset[str]) -> Place:
        schemas = {pointer: schema for pointer in sorted(leaves) if isinstance(schema := self._schema(pointer), dict)}
        anything = [ANYTHING] if len(schemas) < len(leaves) else []
        arrays = {pointer: schema for pointer, schema in schemas.items() if "array" in _kinds(schema)}
        objects = {pointer: schema for pointer, schema in schemas.items() if "object" in _kinds(schema)}
        distinct = self._distinct(arrays)
        if anything and distinct is not None:
            distinct = self._distinct_among_others(distinct, join(min(self._unique & arrays.keys()), "uniqueItems"))
        items = self._number([*anything, *(at for pointer, schema in arrays.items() for at in _items(pointer, schema))])
        names = dict.fromkeys(name for schema in objects.values() for name in dict_at(schema, "properties"))
        loose = not self._loose.isdisjoint(leaves)
        if loose and (counted := [pointer for pointer, schema in objects.items() if _counts_names(schema)]):
            where = join(counted[0], "minProperties")
            raise UnsupportedGrammar("`minProperties` is not enforced where an object may run out of names in the same place", where)
        inside = {name: self._number([*anything, *self._member(objects, name)]) for name in names}
        others = self._number([*anything, *(at for pointer, schema in objects.items() for at in self._further(pointer, schema))])
        members = self._members(objects, is_alone=len(objects) == 1 and not anything)
        return Place(inside, others, items, distinct, loose and members is None, members)

    def _members(self, objects: dict[str, Schema], is_alone: bool) -> Members | None:
        unordered = self._unordered & objects.keys()
        if not is_alone:
            self.sharing |= unordered
        if not is_alone or not unordered:
            return None
        (schema,) = objects.values()
        names = [name for name, member in dict_at(schema, "properties").items() if member is not False]
        is_open = schema.get("additionalProperties", True) is not False
        return Members(tuple(map(str, list_at(schema, "required"))), None if is_open else tuple(names))

    def _distinct(self, arrays: dict[str, Schema]) -> Items | None:
        asking = [pointer for pointer, schema in arrays.items() if schema.get("uniqueItems")]
        for pointer, schema in arrays.items():
            if "prefixItems" in schema and not self._unique.isdisjoint(_items(pointer, schema)):
                raise UnsupportedGrammar("`uniqueItems` inside of `prefixItems` is not enforced", join(pointer, "prefixItems"))
        if not asking:
            return None
        where = join(asking[0], "uniqueItems")
        if len(asking) < len(arrays):
            raise UnsupportedGrammar("`uniqueItems` is not enforced where another array may stand in the same place", where)
        kinds = {self._items_of(pointer, arrays[pointer]) for pointer in asking}
        told = kinds.pop()
        if isinstance(told, str):
            raise UnsupportedGrammar(told, where)
        if kinds:
            raise UnsupportedGrammar("`uniqueItems` is not enforced where arrays of different items may stand in the same place", where)
        return told

    def _distinct_among_others(self, distinct: Items, where: str) -> Items:
        """Where another branch lets anything stand in the place: items are kept apart all the same, if those of the array never run out."""
        if distinct.form not in (None, FREE) or distinct.strings is not None:
            raise UnsupportedGrammar("`uniqueItems` is not enforced where anything else may stand in the same place", where)
        try:
            return Items(form=self._builder.anything(distinct.form is None and distinct.whole))
        except UnsupportedGrammar as error:
            raise UnsupportedGrammar(error.message, where) from None

    def _items_of(self, pointer: str, array: Schema) -> Items | str:
        plain = items_of(self._references, pointer, self._effort)
        if not isinstance(plain, str) or "prefixItems" in array:
            return plain
        try:
            form = self._builder.items(join(pointer, "items") if "items" in array else ANYTHING)
        except UnsupportedGrammar as error:
            return error.message
        least = array.get("minItems", 0)
        if form != FREE and isinstance(least, int) and least > self._builder.forms[form].count:
            return "`uniqueItems` with `minItems` leaves no array"
        return Items(form=form)

    def _member(self, objects: dict[str, Schema], name: str) -> Iterator[str]:
        for pointer, schema in objects.items():
            if name not in dict_at(schema, "properties"):
                yield from self._further(pointer, schema)
                continue
            own = join(pointer, "properties", name)
            yield own
            # A pattern may ask of listed names too. To read one takes milliseconds, and where it leaves names out, tens.
            patterned = {pattern: join(pointer, "patternProperties", pattern) for pattern in dict_at(schema, "patternProperties")}
            if any(not self._asking.isdisjoint(self._leaves(at)) for at in (own, *patterned.values())):
                yield from (at for pattern, at in patterned.items() if self._may_match(pattern, name))

    def _may_match(self, pattern: str, name: str) -> bool:
        try:
            if pattern not in self._recognizers:
                self._recognizers[pattern] = Recognizer(pattern, self._effort)
            return self._recognizers[pattern].matches(name)
        except GrammarError:
            return True

    def _further(self, pointer: str, schema: Schema) -> list[str]:
        """The schemas of members that are not listed."""
        found = [join(pointer, "patternProperties", pattern) for pattern in dict_at(schema, "patternProperties")]
        if not self._unique.isdisjoint(found) and len(found) + len(dict_at(schema, "properties")) > 1:
            raise UnsupportedGrammar("`uniqueItems` inside of `patternProperties` beside other properties is not enforced", found[0])
        others = schema.get("additionalProperties", True)
        if others is not False:
            found.append(join(pointer, "additionalProperties") if isinstance(others, dict) else ANYTHING)
        return found


def _items(pointer: str, schema: Schema) -> list[str]:
    found = [join(pointer, "prefixItems", index) for index in range(len(list_at(schema, "prefixItems")))]
    return [*found, join(pointer, "items") if "items" in schema else ANYTHING]


def _counts_names(schema: Schema) -> bool:
    """Whether it asks for several names that it does not list: one comes once in any case."""
    least = schema.get("minProperties", 0)
    return isinstance(least, int) and least > 1 + len(list_at(schema, "required"))


def _kinds(schema: Schema) -> list[str]:
    """The types of its values, as far as it tells."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list):
        return [type_of(value) for value in values]
    return types_of(schema) or ["array", "object"]
