"""The forms of a schema's items, as far as it must be known how many ways they leave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from grammar_service.errors import GrammarError, UnsupportedGrammar
from grammar_service.guards.forms import ENOUGH, FREE, Form, Layout, Slot, times
from grammar_service.guards.open_objects import may_run_out
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.unending import never_runs_out
from grammar_service.schema.formats.known import FORMATS
from grammar_service.schema.json_text import Json, text_of
from grammar_service.schema.keywords import IN_PLACE, SEQUENCE, Schema
from grammar_service.schema.normal_form.disjoint import values_of
from grammar_service.schema.normal_form.normal import types_of
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References, asserting

MOST_FORMS = 200
MOST_SLOTS = 256
MOST_SCALARS = 50
"""Enum values of one form. A mask tests each allowed token against each value: 12 ms with 150 values, 140 ms with 500."""
ANYTHING = "*"
"""In place of the pointer of a schema that is not written: it asks for nothing."""
_ALL_TYPES = ("null", "boolean", "number", "string", "array", "object")
_LONGEST = 1e15
"""Whole numbers from there on may be written with an exponent."""
_COUNTS = frozenset({"minProperties", "maxProperties"})

Leaves = frozenset[str]


class FormBuilder:
    """Of the schemas of a document in normal form."""

    def __init__(self, references: References, effort: Effort) -> None:
        self._references = references
        self._effort = effort
        self._known: dict[tuple[Leaves, int], int] = {}
        self._open: set[Leaves] = set()
        self.forms: list[Form] = []

    def form(self, pointers: Iterable[str], tail: int = 1) -> int:
        """That of values which satisfy one of these schemas, with as many ways to go on behind them.

        Raises:
            UnsupportedGrammar: it is not known how many they are, or which of the schemas one satisfies.
        """
        leaves = frozenset(leaf for pointer in pointers for leaf in self._leaves(pointer))
        if tail >= ENOUGH:
            return FREE
        if (leaves, tail) not in self._known:
            if leaves in self._open or len(self.forms) >= MOST_FORMS:
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
        leaves = frozenset(self._leaves(pointer))
        # Nothing follows a whole zero.
        whole = any("integer" in _types(self._schema_of(leaf)) for leaf in leaves)
        return FREE if leaves and not whole and self._are_endless(leaves) else self.form([pointer])

    def _are_endless(self, leaves: Leaves) -> bool:
        return all(self._endless_types(leaf) == _types(self._schema_of(leaf)) != set() for leaf in leaves)

    def _leaves(self, start: str) -> set[str]:
        """The schemas without branches and references that one comes to. Raises UnsupportedGrammar: several are about the same value."""
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
                branches = self._schema_of(at)["anyOf"]
                waiting += [join(at, "anyOf", index) for index in range(len(branches) if isinstance(branches, list) else 0)]
            else:
                raise _unknown()
        return leaves

    def _schema_of(self, leaf: str) -> Schema:
        schema = True if leaf == ANYTHING else self._references.schemas[leaf]
        return schema if isinstance(schema, dict) else {}

    def _build(self, leaves: Leaves, tail: int) -> Form:
        endless, scalars, whole = set[str](), dict[str, None](), True
        objects: list[str] = []
        arrays: list[str] = []
        for leaf in sorted(leaves):
            schema = self._schema_of(leaf)
            found, values = self._endless_types(leaf), values_of(schema)
            endless.update("number" if kind == "integer" else kind for kind in found)
            whole = whole and "number" not in found
            if values is not None:
                scalars.update(dict.fromkeys(_texts(values)))
                continue
            for kind in _types(schema) - found:
                match kind:
                    case "object":
                        objects.append(leaf)
                    case "array":
                        arrays.append(leaf)
                    case "boolean" | "null":
                        scalars.update(dict.fromkeys(("false", "true") if kind == "boolean" else ("null",)))
                    case _:
                        raise _unknown()
        if (objects and "object" in endless) or (arrays and "array" in endless):
            raise _unknown()
        self._refuse_other_strings(leaves, endless, scalars)
        kept = tuple(text for text in scalars if _type_of(text) not in endless)
        if len(kept) > MOST_SCALARS:
            raise UnsupportedGrammar(f"`uniqueItems` of more than {MOST_SCALARS} listed values beside others is not enforced")
        # Of several, which one it is may show late: then each is counted for itself.
        layouts = tuple(self._object(leaf, tail, len(objects) > 1) for leaf in objects)
        self._refuse_mixed(objects, layouts)
        if len(arrays) > 1:
            raise _unknown()
        return Form(tuple(sorted(endless)), whole, kept, layouts, tuple(self._array(leaf, tail) for leaf in arrays))

    def _refuse_other_strings(self, leaves: Leaves, endless: set[str], scalars: Iterable[str]) -> None:
        """Listed values that have a beginning which no endless ones have."""
        told = {_type_of(text) for text in scalars if _type_of(text) != "number" or not text.lstrip("-").isdigit()}
        plain = any("string" in _types(schema) and not {"pattern", "format"} & schema.keys() for schema in map(self._schema_of, leaves))
        if "string" in told & endless and not plain:
            raise _unknown()
        if "number" in endless and "number" in {_type_of(text) for text in scalars}:
            raise _unknown()

    def _endless_types(self, leaf: str) -> set[str]:
        """The types of a schema's values that always go on: until the last quote or bracket endlessly many are left."""
        schema = self._schema_of(leaf)
        if values_of(schema) is not None:
            return set()
        return {kind for kind in _types(schema) if self._is_endless(leaf, kind, schema)}

    def _is_endless(self, leaf: str, kind: str, schema: Schema) -> bool:
        match kind:
            case "string":
                return "maxLength" not in schema and "allOf" not in schema and self._string_is_endless(schema)
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

    def _string_is_endless(self, schema: Schema) -> bool:
        patterns = [schema["pattern"]] if "pattern" in schema else []
        if "format" in schema:
            known = FORMATS.get(str(schema["format"]))
            if known is None or patterns:
                return False
            patterns = [known.pattern]
        try:
            return all(isinstance(pattern, str) and never_runs_out(StringSet.of_pattern(pattern, self._effort)) for pattern in patterns)
        except GrammarError:
            return False

    def _object_is_endless(self, leaf: str, schema: Schema) -> bool:
        if "maxProperties" in schema:
            return False
        patterns = schema.get("patternProperties")
        if (others := schema.get("additionalProperties", True)) is not False:
            return not patterns and (others is True or bool(self._leaves(join(leaf, "additionalProperties"))))
        return bool(patterns) and isinstance(patterns, dict) and False not in patterns.values() and not may_run_out(schema, self._effort)

    def _array_is_endless(self, leaf: str, schema: Schema) -> bool:
        if {"maxItems", "prefixItems"} & schema.keys() or schema.get("items", True) is False:
            return False
        if not schema.get("uniqueItems") or "items" not in schema:
            return True
        # Which may hold such arrays in turn, or themselves.
        leaves = frozenset(self._leaves(join(leaf, "items")))
        plain = all("array" not in _types(self._schema_of(inner)) for inner in leaves)
        return plain and bool(leaves) and self._are_endless(leaves)

    def _object(self, leaf: str, tail: int, among_others: bool) -> Layout:
        schema = self._schema_of(leaf)
        properties, required = schema.get("properties", {}), schema.get("required", [])
        patterned = schema.get("patternProperties") or schema.get("additionalProperties", True) is not False
        if patterned or _COUNTS & schema.keys() or not isinstance(properties, dict) or not isinstance(required, list):
            raise _unknown()
        if len(properties) > MOST_SLOTS or not set(required) <= properties.keys():
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
        first, least, most = schema.get("prefixItems", []), schema.get("minItems", 0), schema.get("maxItems")
        prefix = first if isinstance(first, list) else []
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
        leaves = frozenset(leaf for pointer in pointers for leaf in self._leaves(pointer))
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
