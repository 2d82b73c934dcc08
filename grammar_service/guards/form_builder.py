"""The forms of a schema's items, as far as it must be known how many ways they leave."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce

from msgspec import structs

from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.guards.distinct_items import STRING_KEYWORDS, counted, is_never_exhausted, strings_of
from grammar_service.guards.forms import ENOUGH, FREE, CountedStrings, Form, IntegerRange, Layout, Slot, times
from grammar_service.guards.open_objects import may_run_out
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.json_text import Json, text_of
from grammar_service.schema.keywords import IN_PLACE, SEQUENCE, Schema, dict_at, list_at
from grammar_service.schema.normal_form.disjoint import values_of
from grammar_service.schema.normal_form.normal import types_of
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References, asserting

MOST_FORMS = 200
MOST_NESTED = 50
"""Forms in each other."""
MOST_SLOTS = 256
MOST_SCALARS = 50
"""Listed numbers of one form. A mask tests each allowed token against each value: 12 ms with 150 values, 140 ms with 500."""
ANYTHING = "*"
"""In place of the pointer of a schema that is not written: it asks for nothing."""
_ALL_TYPES = ("null", "boolean", "number", "string", "array", "object")
_LONGEST = 1e15
"""IntegerRange numbers from there on may be written with an exponent."""
_COUNTS = frozenset({"minProperties", "maxProperties"})
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")

Leaves = frozenset[str]


@dataclass(slots=True)
class _FormParts:
    """Of a form: the types of which values always go on, and what may run out, objects and arrays by where they stand."""

    endless: set[str] = field(default_factory=set)
    whole: bool = True
    scalars: dict[str, None] = field(default_factory=dict)
    strings: list[StringSet] = field(default_factory=list)
    numbers: list[IntegerRange] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)


class FormBuilder:
    """Of the schemas of a document in normal form."""

    def __init__(self, references: References, effort: Effort) -> None:
        self._references = references
        self._effort = effort
        self._known: dict[tuple[Leaves, int], int] = {}
        self._known_leaves: dict[str, set[str]] = {}
        self._endless: dict[str, set[str]] = {}
        self._strings: dict[str, StringSet] = {}
        self._open: set[Leaves] = set()
        self.forms: list[Form] = []

    def form(self, pointers: Iterable[str], tail: int = 1) -> int:
        """That of values which satisfy one of these schemas, with as many ways to go on behind them.

        Raises:
            UnsupportedGrammar: it is not known how many they are, or which of the schemas one satisfies.
        """
        leaves = self._all_leaves(*pointers)
        if tail >= ENOUGH:
            return FREE
        if (leaves, tail) not in self._known:
            if leaves in self._open or len(self.forms) >= MOST_FORMS or len(self._open) >= MOST_NESTED:
                raise UnsupportedGrammar("`uniqueItems` of items that hold themselves, or of so many kinds, is not enforced")
            self._open.add(leaves)
            try:
                form = self._build(leaves, tail)
            finally:
                self._open.discard(leaves)
            self.forms.append(form)
            self._known[leaves, tail] = len(self.forms) - 1
        return self._known[leaves, tail]

    def items(self, pointer: str) -> int:
        """The form of the items of an array; FREE where nothing in them need be counted. Raises as `form` does."""
        leaves = self._all_leaves(pointer)
        # Nothing follows a whole zero.
        whole = any("integer" in _types(self._schema_of(leaf)) for leaf in leaves)
        return FREE if leaves and not whole and self._are_endless(leaves) else self.form([pointer])

    def anything(self, whole: bool) -> int:
        """The form of items of all kinds. `whole`: a zero among them must not be expected to go on. Raises as `form` does."""
        form = self.items(ANYTHING)
        if not whole:
            return form
        self.forms.append(structs.replace(self.forms[form], whole=True))
        return len(self.forms) - 1

    def _all_leaves(self, *pointers: str) -> Leaves:
        return frozenset(leaf for pointer in pointers for leaf in self._leaves(pointer))

    def _are_endless(self, leaves: Leaves) -> bool:
        return all(self._endless_types(leaf) == _types(self._schema_of(leaf)) != set() for leaf in leaves)

    def _leaves(self, start: str) -> set[str]:
        """The schemas without branches and references that one comes to. Raises UnsupportedGrammar: several are about the same value."""
        if start not in self._known_leaves:
            self._known_leaves[start] = self._found_leaves(start)
        return self._known_leaves[start]

    def _found_leaves(self, start: str) -> set[str]:
        leaves, seen, waiting = set[str](), set[str](), [start]
        while waiting:
            at = waiting.pop()
            schema = True if at == ANYTHING else self._references.schemas[at]
            if at in seen or schema is False:
                continue
            seen.add(at)
            applied = IN_PLACE & schema.keys() if isinstance(schema, dict) else set()
            if not applied:
                leaves.add(at)
            elif applied == {"$ref"} and asserting(self._schema_of(at)) == {"$ref"}:
                waiting.append(self._references.target_of(at))
            elif applied == {"anyOf"} and asserting(self._schema_of(at)) == {"anyOf"}:
                waiting += [join(at, "anyOf", index) for index in range(len(list_at(self._schema_of(at), "anyOf")))]
            else:
                raise _unknown()
        return leaves

    def _schema_of(self, leaf: str) -> Schema:
        schema = True if leaf == ANYTHING else self._references.schemas[leaf]
        return schema if isinstance(schema, dict) else {}

    def _build(self, leaves: Leaves, tail: int) -> Form:
        parts = self._parts(leaves)
        endless = parts.endless
        if (parts.objects and "object" in endless) or (parts.arrays and "array" in endless) or len(parts.arrays) > 1:
            raise _unknown()
        self._refuse_other_strings(leaves, parts)
        self._count_numbers(leaves, parts)
        listed = sorted(str(json.loads(text)) for text in parts.scalars if _type_of(text) == "string")
        kept = tuple(text for text in parts.scalars if _type_of(text) not in endless | {"string"})
        if len(kept) > MOST_SCALARS:
            raise UnsupportedGrammar(f"`uniqueItems` of more than {MOST_SCALARS} listed values beside others is not enforced")
        # Of several, which one it is may show late: then each is counted for itself.
        objects = tuple(self._object(leaf, tail, len(parts.objects) > 1) for leaf in parts.objects)
        self._refuse_mixed(parts.objects, objects)
        return Form(
            tuple(sorted(endless)),
            parts.whole,
            kept,
            None if "string" in endless else _few(parts.strings, listed),
            _merged(parts.numbers),
            objects,
            tuple(self._array(leaf, tail) for leaf in parts.arrays),
        )

    def _parts(self, leaves: Leaves) -> _FormParts:
        parts = _FormParts()
        for leaf in sorted(leaves):
            schema = self._schema_of(leaf)
            found, values = self._endless_types(leaf), values_of(schema)
            parts.endless.update("number" if kind == "integer" else kind for kind in found)
            parts.whole = parts.whole and "number" not in found
            if values is not None:
                parts.scalars.update(dict.fromkeys(_texts(values)))
                continue
            for kind in _types(schema) - found:
                self._add_few(parts, kind, leaf)
        return parts

    def _add_few(self, parts: _FormParts, kind: str, leaf: str) -> None:
        """The values of a type that may run out."""
        match kind:
            case "object":
                parts.objects.append(leaf)
            case "array":
                parts.arrays.append(leaf)
            case "boolean" | "null":
                parts.scalars.update(dict.fromkeys(("false", "true") if kind == "boolean" else ("null",)))
            case "string":
                parts.strings.append(self._strings_of(leaf))
            case "integer":
                parts.numbers.append(_integer_range(self._schema_of(leaf)))
            case _:
                raise _unknown()

    def _strings_of(self, leaf: str) -> StringSet:
        """Those that may run out."""
        schema = self._schema_of(leaf)
        if leaf not in self._strings:
            asserted = {name: schema[name] for name in STRING_KEYWORDS & schema.keys()}
            try:
                self._strings[leaf] = strings_of({**asserted, "type": "string"}, self._effort)
            except GrammarError:
                raise _unknown() from None
        return self._strings[leaf]

    def _refuse_other_strings(self, leaves: Leaves, parts: _FormParts) -> None:
        """Strings that may run out and have a beginning which no endless ones have."""
        few = bool(parts.strings) or any(_type_of(text) == "string" for text in parts.scalars)
        plain = any("string" in self._endless_types(leaf) and not {"pattern", "format"} & self._schema_of(leaf).keys() for leaf in leaves)
        if few and "string" in parts.endless and not plain:
            raise _unknown()

    def _count_numbers(self, leaves: Leaves, parts: _FormParts) -> None:
        """Where some of the whole numbers may run out, all of them are in ranges."""
        listed = [text for text in parts.scalars if _type_of(text) == "number"]
        if not parts.numbers and not (listed and "number" in parts.endless):
            return
        if "number" in parts.endless:
            if not parts.whole:
                raise _unknown()
            parts.numbers += [_integer_range(schema) for schema in map(self._schema_of, leaves) if "integer" in _types(schema)]
            parts.endless.discard("number")
        for text in listed:
            if text.lstrip("-").isdigit():
                parts.numbers.append(IntegerRange(int(text), int(text)))
                del parts.scalars[text]

    def _endless_types(self, leaf: str) -> set[str]:
        """The types of a schema's values that always go on: until the last quote or bracket endlessly many are left."""
        if leaf not in self._endless:
            schema = self._schema_of(leaf)
            kinds = _types(schema) if values_of(schema) is None else ()
            self._endless[leaf] = {kind for kind in kinds if self._is_endless(leaf, kind, schema)}
        return self._endless[leaf]

    def _is_endless(self, leaf: str, kind: str, schema: Schema) -> bool:
        match kind:
            case "string":
                return is_never_exhausted(schema, self._effort)
            case "integer":
                bounds = [schema[name] for name in ("minimum", "exclusiveMinimum") if name in schema]
                above = {"maximum", "exclusiveMaximum", "multipleOf"} & schema.keys()
                return not above and all(isinstance(bound, int) and bound >= 0 for bound in bounds)
            case "number":
                return not {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} & schema.keys()
            case "object":
                return self._object_is_endless(leaf, schema)
            case "array":
                return self._array_is_endless(leaf, schema)
        return False

    def _object_is_endless(self, leaf: str, schema: Schema) -> bool:
        if "maxProperties" in schema:
            return False
        patterns = dict_at(schema, "patternProperties")
        if (others := schema.get("additionalProperties", True)) is not False:
            return not patterns and (others is True or bool(self._leaves(join(leaf, "additionalProperties"))))
        return bool(patterns) and False not in patterns.values() and not may_run_out(schema, self._effort)

    def _array_is_endless(self, leaf: str, schema: Schema) -> bool:
        if {"maxItems", SEQUENCE} & schema.keys() or schema.get("items", True) is False:
            return False
        if not schema.get("uniqueItems") or "items" not in schema:
            return True
        return "prefixItems" not in schema and self._has_unbounded_scalar(join(leaf, "items"))

    def _has_unbounded_scalar(self, pointer: str) -> bool:
        """Whether endlessly many values satisfy a schema: some scalar in them is one of so many. In doubt they are few."""
        seen, waiting = set[str](), [*self._leaves(pointer)]
        while waiting:
            leaf = waiting.pop()
            if leaf in seen:
                continue
            seen.add(leaf)
            self._effort.spend(1)
            schema = self._schema_of(leaf)
            types = set() if values_of(schema) is not None else _types(schema)
            if any(self._is_endless(leaf, kind, schema) for kind in types - {"array", "object"}):
                return True
            inner = [join(leaf, "properties", name) for name in dict_at(schema, "properties")] if "object" in types else []
            if "array" in types and "items" in schema and "prefixItems" not in schema and schema.get("maxItems", 1):
                inner.append(join(leaf, "items"))
            waiting += [found for at in inner for found in self._leaves(at)]
        return False

    def _object(self, leaf: str, tail: int, among_others: bool) -> Layout:
        schema = self._schema_of(leaf)
        properties, required = dict_at(schema, "properties"), list_at(schema, "required")
        patterned = schema.get("patternProperties") or schema.get("additionalProperties", True) is not False
        if patterned or _COUNTS & schema.keys() or len(properties) > MOST_SLOTS or not set(required) <= properties.keys():
            raise _unknown()
        slots: list[Slot] = []
        rest = [1]
        for name, member in reversed(properties.items()):
            if member is False:
                continue
            pointers = [join(leaf, "properties", name)]
            slot = self._slot(name, pointers, name in required, 1 if among_others else times(tail, rest[-1]))
            slots.append(slot)
            rest.append(times(slot.count + (0 if slot.required else 1), rest[-1]))
        return Layout(tuple(reversed(slots)), tuple(reversed(rest)))

    def _array(self, leaf: str, tail: int) -> Layout:
        schema = self._schema_of(leaf)
        if SEQUENCE in schema:
            raise _unknown()
        prefix, least, most = list_at(schema, "prefixItems"), schema.get("minItems", 0), schema.get("maxItems")
        if schema.get("items", True) is False:
            most = min(len(prefix), most) if isinstance(most, int) else len(prefix)
        if not isinstance(most, int) or most > MOST_SLOTS or not isinstance(least, int) or schema.get("uniqueItems"):
            raise _unknown()
        slots: list[Slot] = []
        rest = [1]
        for index in reversed(range(most)):
            own = join(leaf, "prefixItems", index) if index < len(prefix) else join(leaf, "items") if "items" in schema else ANYTHING
            slot = self._slot(str(index), [own], index < least, times(tail, rest[-1]))
            slots.append(slot)
            rest.append(min(ENOUGH, times(slot.count, rest[-1]) + (0 if slot.required else 1)))
        return Layout(tuple(reversed(slots)), tuple(reversed(rest)))

    def _refuse_mixed(self, leaves: list[str], layouts: tuple[Layout, ...]) -> None:
        """Where members of several objects come in another order, or nothing that shows tells which object it is."""
        for mine, left in zip(leaves, layouts, strict=True):
            for theirs, right in zip(leaves, layouts, strict=True):
                at = {slot.name: index for index, slot in enumerate(right.slots)}
                shared = [slot for slot in left.slots if slot.name in at]
                order = [at[slot.name] for slot in shared]
                if order != sorted(order):
                    raise _unknown()
                for slot in shared:
                    ours, others = (join(leaf, "properties", slot.name) for leaf in (mine, theirs))
                    if self._texts_of(ours) != self._texts_of(others) and not _differ_by_type(slot.tells, right.slots[at[slot.name]].tells):
                        raise _unknown()

    def _texts_of(self, pointer: str) -> set[str]:
        return {text_of(self._schema_of(leaf)) for leaf in self._leaves(pointer)}

    def _slot(self, name: str, pointers: list[str], required: bool, tail: int) -> Slot:
        form = self.form(pointers, tail)
        leaves = self._all_leaves(*pointers)
        count = self.forms[form].count if form != FREE else self._least(leaves)
        return Slot(name, form, required, tuple(sorted(self._tells(leaves))), count)

    def _least(self, leaves: Leaves) -> int:
        """Values of some schemas, at least, without a look into objects and arrays."""
        if any(self._endless_types(leaf) for leaf in leaves):
            return ENOUGH
        listed = {text for leaf in leaves for text in _texts(values_of(self._schema_of(leaf)) or [])}
        return max(1, len(listed))

    def _tells(self, leaves: Leaves) -> Iterator[str]:
        for leaf in leaves:
            schema = self._schema_of(leaf)
            values = values_of(schema)
            if values is not None:
                yield from _texts(values)
            for kind in _types(schema) if values is None else ():
                plain = schema.keys() <= {"type"} and kind != "integer"
                told = kind if plain else f"some {kind.replace('integer', 'number')}"
                yield from ("false", "true") if kind == "boolean" else ("null",) if kind == "null" else (told,)


def _few(sets: list[StringSet], listed: list[str]) -> CountedStrings | None:
    """Strings of some sets, and listed ones; None where there are none."""
    if not sets:
        return CountedStrings(tuple(listed)) if listed else None
    try:
        return counted(reduce(StringSet.union, [*sets, *([StringSet.of_strings(listed)] if listed else [])]))
    except GrammarError:
        raise _unknown() from None


def _integer_range(schema: Schema) -> IntegerRange:
    """The integers of a schema. Raises UnsupportedGrammar: not all between two bounds."""
    bounds = {name: bound for name in _BOUNDS if isinstance(bound := schema.get(name), int | float)}
    if "multipleOf" in schema or bounds.keys() != schema.keys() & {*_BOUNDS}:
        raise _unknown()
    above = [math.ceil(bounds["minimum"])] if "minimum" in bounds else []
    below = [math.floor(bounds["maximum"])] if "maximum" in bounds else []
    above += [math.floor(bounds["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in bounds else []
    below += [math.ceil(bounds["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in bounds else []
    return IntegerRange(max(above, default=None), min(below, default=None))


def _merged(ranges: list[IntegerRange]) -> tuple[IntegerRange, ...]:
    """The same numbers in ranges that do not meet."""
    found: list[IntegerRange] = []
    for one in sorted(ranges, key=lambda one: -math.inf if one.least is None else one.least):
        last = found[-1] if found else None
        if last is None or (last.most is not None and one.least is not None and one.least > last.most + 1):
            found.append(one)
        elif last.most is not None and (one.most is None or one.most > last.most):
            found[-1] = IntegerRange(last.least, one.most)
    return tuple(found)


def _unknown() -> UnsupportedGrammar:
    return UnsupportedGrammar("`uniqueItems` is not enforced for items of which it is not known how many there are")


def _types(schema: Schema) -> set[str]:
    return set(types_of(schema)) or set(_ALL_TYPES) if values_of(schema) is None else set()


def _texts(values: list[Json]) -> list[str]:
    """The JSON texts of scalars. Raises UnsupportedGrammar: there are others, or numbers with exponents."""
    texts = [json.dumps(_whole(value), ensure_ascii=False) for value in values]
    if any(
        isinstance(value, (list, dict)) or (isinstance(value, float) and "e" in text) for value, text in zip(values, texts, strict=True)
    ):
        raise _unknown()
    return texts


def _whole(value: Json) -> Json:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _LONGEST else value


def _type_of(text: str) -> str:
    return "string" if text[0] == '"' else "boolean" if text in ("true", "false") else "null" if text == "null" else "number"


def _differ_by_type(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether it shows of every value if it is one of the left or of the right: nothing else is known of `some` values of a type."""

    def kinds(tells: tuple[str, ...]) -> set[str]:
        return {tell.removeprefix("some ") if tell in _ALL_TYPES or tell.startswith("some ") else _type_of(tell) for tell in tells}

    def unknown(tells: tuple[str, ...]) -> set[str]:
        return {tell.removeprefix("some ") for tell in tells if tell.startswith("some ")}

    return kinds(left).isdisjoint(unknown(right)) and kinds(right).isdisjoint(unknown(left))
