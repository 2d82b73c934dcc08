"""Schemas with sequences (`schema.writing.sequences`) as Lark: llguidance reads no such keyword, but mixes rules and schemas.

Only what leads to a sequence is written as rules; every other schema stays one. Rules allow the members of objects, and lay text out, as
the library does itself: listed properties in their order, then others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from grammar_service.backends.llguidance.lark_text import literal, repeated
from grammar_service.backends.llguidance.layout import options_of, separators_of
from grammar_service.backends.patterns import with_patterns, with_plain_names
from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.other_strings import pattern_of_others
from grammar_service.schema.fault import Fault
from grammar_service.schema.json_text import Json, text_of
from grammar_service.schema.keywords import SEQUENCE, Schema, dict_at, list_at, walk
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References
from grammar_service.spec import STANDARD

_OPTIONS = "x-guidance"
_SPACE = r"%ignore /[\x20\x0A\x0D\x09]+/"
_DEFINITIONS = "#/$defs/"


def has_sequences(document: Schema) -> bool:
    """Whether a rewrite needs rules of its own."""
    return any(isinstance(schema, dict) and SEQUENCE in schema for _, schema in walk(document))


def sequence_faults(document: Schema) -> Iterator[Fault]:
    """What rules do not say of schemas that lead to sequences."""
    if has_sequences(document):
        try:
            plain = with_plain_names(document)
            lark_of(plain if isinstance(plain, dict) else {}, STANDARD)
        except UnsupportedGrammar as error:
            yield Fault(error.pointer, error.message)


def lark_of(document: Schema, whitespace: str) -> str:
    """The whole document as Lark. `document`: a rewrite, as the library may read it but for its sequences. Raises UnsupportedGrammar: it
    is none, or says what rules do not."""
    return _Rules(document, whitespace).text()


class _Rules:
    """One rule for each schema that leads to a sequence, and for each other one that stands in such a rule."""

    def __init__(self, document: Schema, whitespace: str) -> None:
        self._references = References(dict(walk(document)))
        self._leading = self._references.leading_to(
            pointer for pointer, schema in self._references.schemas.items() if isinstance(schema, dict) and SEQUENCE in schema
        )
        self._options = options_of(whitespace)
        self._comma, self._colon = map(literal, separators_of(whitespace))
        self._names: dict[str, str] = {}
        self._waiting: list[tuple[str, str]] = []
        self._lines: list[str] = []

    def text(self) -> str:
        lines = [_SPACE] if self._options["whitespace_flexible"] else []
        lines.append(f"start: {self._rule('')}")
        while self._waiting:
            pointer, name = self._waiting.pop()
            self._add(name, self._branches(pointer, name) if pointer in self._leading else self._plain(pointer))
        return "\n".join([*lines, *self._lines]) + "\n"

    def _add(self, name: str, body: str) -> str:
        self._lines.append(f"{name}: {body}")
        return name

    def _rule(self, pointer: str) -> str:
        """The name of a schema's rule; the same for schemas that say the same."""
        schema = self._references.schemas[pointer]
        if schema is False:
            raise _unknown(pointer)
        key = pointer if pointer in self._leading else f" {text_of(schema)}"
        if key not in self._names:
            self._names[key] = f"r{len(self._names)}"
            self._waiting.append((pointer, self._names[key]))
        return self._names[key]

    def _rule_of(self, schema: Schema) -> str:
        """The same of a schema that stands nowhere in the document, and refers to nothing."""
        key = f" {text_of(schema)}"
        if key not in self._names:
            self._names[key] = self._add(f"r{len(self._names)}", self._embedded(schema, {}))
        return self._names[key]

    def _plain(self, pointer: str) -> str:
        """A schema of its own with the definitions that it needs."""
        schema = self._references.schemas[pointer]
        return self._embedded(schema if isinstance(schema, dict) else {}, self._definitions(pointer))

    def _embedded(self, schema: Schema, definitions: Schema) -> str:
        defined: Schema = {"$defs": definitions} if definitions else {}
        return f"%json {json.dumps({_OPTIONS: self._options, **schema, **defined})}"

    def _definitions(self, start: str) -> Schema:
        found: Schema = {}
        waiting = [self._references.schemas[start]]
        while waiting:
            for _, schema in walk(waiting.pop()):
                name = str(schema["$ref"]).removeprefix(_DEFINITIONS) if isinstance(schema, dict) and "$ref" in schema else None
                if name is not None and name not in found:
                    found[name] = self._references.schemas[join("/$defs", name)]
                    waiting.append(found[name])
        return found

    def _branches(self, pointer: str, name: str) -> str:
        schema = self._references.schemas[pointer]
        if not isinstance(schema, dict):
            raise _unknown(pointer)
        if "$ref" in schema:
            return self._rule(self._references.target_of(pointer))
        if isinstance(branches := schema.get("anyOf"), list):
            return " | ".join(self._rule(join(pointer, "anyOf", index)) for index in range(len(branches)))
        match schema.get("type"):
            case "object":
                return self._object(pointer, schema, name)
            case "array":
                return self._sequence(pointer, schema, name) if SEQUENCE in schema else self._array(pointer, schema, name)
        raise _unknown(pointer)

    def _sequence(self, pointer: str, schema: Schema, name: str) -> str:
        """A rule for each state: the items that lead to it. These are left-recursive, which costs the parser least."""
        edges, ends = _automaton(schema)
        reached = {end for _, _, end in edges}
        kinds = {kind: self._rule(join(pointer, "prefixItems", kind)) for _, kind, _ in edges}
        ways: dict[int, list[str]] = {state: [] for state in reached}
        for start, kind, end in edges:
            ways[end] += [kinds[kind]] if start == 0 else []
            ways[end] += [f"{name}_{start} {self._comma} {kinds[kind]}"] if start in reached else []
        for state, found in ways.items():
            self._add(f"{name}_{state}", " | ".join(found))
        bodies = [*([""] if 0 in ends else []), *(f"{name}_{state}" for state in ends if state in reached)]
        return " | ".join(f'"[" {body} "]"' for body in bodies)

    def _array(self, pointer: str, schema: Schema, name: str) -> str:
        listed, least, most = len(list_at(schema, "prefixItems")), _count(schema, "minItems") or 0, _count(schema, "maxItems")
        most = listed if schema.get("items", True) is False else most
        listed = listed if most is None else min(listed, most)
        rest = "" if most == listed else self._rule(join(pointer, "items")) if "items" in schema else self._rule_of({})
        body = repeated(rest, self._comma, max(0, least - listed), None if most is None else most - listed, not listed)
        for index in reversed(range(listed)):
            own = self._rule(join(pointer, "prefixItems", index))
            body = f"{self._comma if index else ''} {own} {body}"
            body = self._add(f"{name}_{index}", f"({body})?" if index >= least else body)
        return f'"[" {body} "]"'

    def _object(self, pointer: str, schema: Schema, name: str) -> str:
        """A rule for what may follow each member (`m`), and for what may come where none has been written (`f`)."""
        slots = _slots(schema)
        least, most = _count(schema, "minProperties") or 0, _count(schema, "maxProperties")
        counted = sum(slots.values())
        if counted < len(slots) and (least or most is not None):
            raise UnsupportedGrammar("properties are not counted where listed ones may be left out, beside `contains`", pointer)
        others, bounds = (
            self._others(pointer, schema, tuple(dict_at(schema, "properties"))),
            (max(0, least - counted), None if most is None else most - counted),
        )
        further = self._add(f"{name}_m", repeated(others, self._comma, *bounds, False) or literal(""))
        start = self._add(f"{name}_f", repeated(others, self._comma, *bounds, True) or literal(""))
        for index, (member, required) in reversed(list(enumerate(slots.items()))):
            written = literal(json.dumps(member, ensure_ascii=False))
            there = f"{written} {self._colon} {self._rule(join(pointer, 'properties', member))} {further}"
            ways = [f"{self._comma} {there}", further], [there, start]
            further, start = (
                self._add(f"{name}_{kind}{index}", found[0] if required else " | ".join(found))
                for kind, found in zip("mf", ways, strict=True)
            )
        return f'"{{" {start} "}}"'

    def _others(self, pointer: str, schema: Schema, listed: tuple[str, ...]) -> str:
        """A member that is not listed; nothing where there is none. A name that matches a pattern is not spelt with escapes."""
        patterns = dict_at(schema, "patternProperties")
        apart = with_patterns({"type": "string", "pattern": pattern_of_others(listed)}) if listed else True
        found = []
        for pattern, member in patterns.items():
            if member is not False:
                key = self._rule_of({"allOf": [{"type": "string", "pattern": pattern}, apart]})
                found.append(f"{key} {self._colon} {self._rule(join(pointer, 'patternProperties', pattern))}")
        others = schema.get("additionalProperties", True)
        if others is not False and (listed or patterns):
            raise _unknown(pointer)
        if others is not False:
            value = self._rule(join(pointer, "additionalProperties")) if "additionalProperties" in schema else self._rule_of({})
            found.append(f"{self._rule_of({'type': 'string'})} {self._colon} {value}")
        return f"({' | '.join(found)})" if found else ""


def _slots(schema: Schema) -> dict[str, bool]:
    """The listed properties that may come, each with whether it must."""
    names = set(map(str, list_at(schema, "required")))
    return {name: name in names for name, member in dict_at(schema, "properties").items() if member is not False or name in names}


def _count(schema: Schema, keyword: str) -> int | None:
    count = schema.get(keyword)
    return count if isinstance(count, int) else None


def _automaton(schema: Schema) -> tuple[list[tuple[int, int, int]], list[int]]:
    told: Json = schema[SEQUENCE]
    edges, ends = (told["edges"], told["ends"]) if isinstance(told, dict) else ([], [])
    listed = [[int(str(number)) for number in edge] for edge in edges if isinstance(edge, list)] if isinstance(edges, list) else []
    return [(start, kind, end) for start, kind, end in listed], [int(str(end)) for end in ends] if isinstance(ends, list) else []


def _unknown(pointer: str) -> UnsupportedGrammar:
    return UnsupportedGrammar("a schema of this form is not written beside `contains`", pointer)
