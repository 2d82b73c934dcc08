"""Arguments of a tool as one text for each member, the way models write them in XML: strings stand as they are, all else is JSON.

The reader at the other end goes by the `type` of a member: it takes a text for the first of null, an integer, a number, a boolean, JSON and
a string that it can be. So a string that could be something else is left out where that is allowed as well, and strings beside objects or
arrays are written as JSON. Readers differ in where they look for types (`Conversion`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Any

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.cases import Cases
from grammar_service.schema.algebra.expression import At
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_schema import schema_of
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import BY_TYPE, KNOWN, Schema, dict_at, list_at, walk
from grammar_service.schema.pointer import join, of_fragment, resolve
from grammar_service.schema.reading.document import Document
from grammar_service.schema.reading.reader import Reader
from grammar_service.schema.references import References

_READ = frozenset({"type", "properties", "required", "additionalProperties", "$defs", "definitions", "$schema", "$id"})
_DEFINITIONS = ("$defs", "definitions")
_WRITABLE_NAME = re.compile(r'(?!\s)[^<>"\r\n]+(?<!\s)')
_UNESCAPED = r'^[^"\\\x00-\x1f]*$'
_JSON_TYPES = frozenset({"object", "array"})
MOST_READ, MOST_DEPTH = 10_000, 50
"""Schemas of one document whose types are looked for, and of those inside of one another. On the event loop: 10 ms."""
_MISTAKEN_FOR = {"integer": "number", "number": "number", "boolean": "boolean"}
_OF_VALUES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"}


class Conversion(StrEnum):
    """What a reader of vLLM's (0.32) makes of a member's text."""

    ALL_TYPES = "all_types"
    """It goes by all types that the member's schema tells, those of values and branches too (`tool_parsers/utils.py`)."""
    DIRECT_TYPES = "direct_types"
    """It goes by `type`, or by that of each branch of `anyOf` or `oneOf`, and tells no null from a string (`hy_v3_tool_parser.py`)."""
    STRING_OR_JSON = "string_or_json"
    """It takes a text for a string where `type` is "string" alone, and for JSON elsewhere (`poolside_v1_tool_parser.py`)."""
    WRITTEN_TYPES = "written_types"
    """It goes by the type that is written beside the text, and by no schema; names are escaped as in XML (`kimi_k3_tool_parser.py`)."""
    JSON_OR_STRING = "json_or_string"
    """It takes a text for JSON where it is some, by Python's reader, and for a string elsewhere (`muse_glimmer_tool_parser.py`)."""


@dataclass(frozen=True, slots=True)
class Member:
    """One argument. `strings`: those that are written without quotes, less those that the reader would have `mistaken_for` a "number", a
    "boolean" or "any_json"; None: no string is written so. `document`: the schema of what is written as JSON, None: nothing is.
    `is_verbatim`: the JSON has strings, or parts that the reader would convert to strings, so that it must be told to take the JSON as it
    is. `by_type`: where types are written, the types of what is written as JSON with the schema of each, instead of one `document`.
    `quoted`: strings that may stand in quotes instead, and need no escape there."""

    name: str
    is_required: bool
    strings: Strings | StringSet | None
    document: Schema | None
    is_verbatim: bool = False
    mistaken_for: frozenset[str] = frozenset()
    by_type: tuple[tuple[str, Schema], ...] = ()
    quoted: StringSet | None = None


def members_of(schema: Schema, closed: bool, formats: bool, conversion: Conversion = Conversion.ALL_TYPES) -> Iterator[Member]:
    """In the order in which the schema has them. Raises GrammarError with a pointer into the schema: it is at fault, or says more of the
    whole than which members there are."""
    schema_of(schema, closed, formats)
    if unread := sorted(KNOWN.intersection(schema) - _READ):
        raise UnsupportedGrammar(f"`{unread[0][:40]}` is not enforced in this model's tool calls", join("", unread[0]))
    if schema.get("type", "object") != "object":
        raise UnsupportedGrammar("arguments are an object", "/type")
    listed, needed = dict_at(schema, "properties"), list_at(schema, "required")
    if missing := [name for name in needed if name not in listed]:
        raise UnsupportedGrammar(f"the required {str(missing[0])[:40]!r} is not in `properties`", "/required")
    for name, member in listed.items():
        if member is False and name not in needed:
            continue
        document, pointer = _with_definitions(member, schema), join("", "properties", name)
        if not _WRITABLE_NAME.fullmatch(name):
            raise UnsupportedGrammar(
                "in this model's tool calls a name has no '<', '>', '\"' or line break, and no space at its ends", pointer
            )
        yield _member(name, name in needed, document, pointer, (closed, formats), conversion)


def _with_definitions(member: Json, schema: Schema) -> Schema:
    """A member's schema with the definitions that it refers to, and those that these do."""
    definitions: dict[str, Schema] = {}
    waiting = [member]
    while waiting:
        for keyword, name in _references(waiting.pop()):
            listed = schema.get(keyword)
            if isinstance(listed, dict) and name in listed and name not in definitions.setdefault(keyword, {}):
                definitions[keyword][name] = listed[name]
                waiting.append(listed[name])
    return {**(member if isinstance(member, dict) else {"not": {}} if member is False else {}), **definitions}


def _references(schema: Json) -> Iterator[tuple[str, str]]:
    """The keyword and the name of the definitions that a schema refers to. Raises UnsupportedGrammar: it refers to something else."""
    for _, inner in walk(schema) if isinstance(schema, dict) else ():
        reference = inner.get("$ref") if isinstance(inner, dict) else None
        if not isinstance(reference, str):
            continue
        steps = [step.replace("~1", "/").replace("~0", "~") for step in of_fragment(reference.removeprefix("#")).split("/")]
        if not reference.startswith("#/") or len(steps) < 3 or steps[1] not in _DEFINITIONS:
            raise UnsupportedGrammar("a reference to anything but a definition is not followed here", "/properties")
        yield steps[1], steps[2]


def _member(name: str, is_required: bool, document: Schema, pointer: str, options: tuple[bool, bool], conversion: Conversion) -> Member:
    told, cases = inferred_types(document, conversion), _cases(document, *options)
    strings = [shape for shape in cases.of("string").shapes if isinstance(shape, Strings)]
    others = {kind for kind, alternatives in cases.by_type.items() if kind != "string" and not alternatives.is_empty}
    raw = _union(strings) if strings else None
    if conversion is Conversion.WRITTEN_TYPES:
        return Member(name, is_required, raw, None, by_type=tuple(_by_type(document, sorted(others), is_all=not strings)))
    plain_document = _without_idle_type(document, told)
    if conversion is Conversion.STRING_OR_JSON and told != {"string"}:
        return Member(name, is_required, None, plain_document)
    if conversion is Conversion.JSON_OR_STRING:
        return _json_or_string(name, is_required, document, strings, bool(others))
    reads_null = conversion is not Conversion.DIRECT_TYPES or "string" not in told or bool(told & _JSON_TYPES)
    if not reads_null and strings:
        others.discard("null")
    possible = others | {"string"} if strings else others
    if unread := sorted(kind for kind in possible if not is_inferred(kind, told) or (kind == "null" and not reads_null)):
        raise UnsupportedGrammar(f"the model's parser would take {unread[0]} for text: the argument needs a `type`", pointer)
    if not strings:
        return Member(name, is_required, None, plain_document, is_verbatim=bool(told & _JSON_TYPES) and not _keeps_nested_types(document))
    if told & _JSON_TYPES:
        return Member(name, is_required, None, plain_document, is_verbatim=True)
    mistaken_for = frozenset(_MISTAKEN_FOR[kind] for kind in told & _MISTAKEN_FOR.keys())
    raw_kinds: Json = "string" if reads_null else ["string", "null"]
    rest: Schema | None = {"allOf": [document], "not": {"type": raw_kinds}, **_defined(document)} if others else None
    return Member(name, is_required, raw, rest, mistaken_for=mistaken_for)


def _by_type(document: Schema, kinds: Sequence[str], is_all: bool) -> Iterator[tuple[str, Schema]]:
    """The schema's values of each of these types; `is_all`: it has no others."""
    for kind in kinds:
        yield kind, document if is_all and len(kinds) == 1 else {"allOf": [document], "type": kind, **_defined(document)}


def _json_or_string(name: str, is_required: bool, document: Schema, strings: list[Strings], has_others: bool) -> Member:
    """A string may have quotes, and must, where it is JSON without them. JSON has no patterns: what has some is written here."""
    if not strings:
        return Member(name, is_required, None, document)
    raw, mistaken_for = _union(strings), frozenset({"any_json"})
    if isinstance(raw, Strings) and raw == Strings(raw.least, raw.most):
        return Member(name, is_required, raw, document, mistaken_for=mistaken_for)
    language = raw.language() if isinstance(raw, Strings) else raw
    rest: Schema | None = {"allOf": [document], "not": {"type": "string"}, **_defined(document)} if has_others else None
    quoted = StringSet.all_of([language, StringSet.of_pattern(_UNESCAPED)])
    return Member(name, is_required, raw, rest, mistaken_for=mistaken_for, quoted=quoted)


def _union(strings: list[Strings]) -> Strings | StringSet:
    return strings[0] if len(strings) == 1 else reduce(StringSet.union, (shape.language() for shape in strings))


def _keeps_nested_types(document: Schema) -> bool:
    """Whether a reader who takes the parts of a value for what their schemas tell leaves them as they are."""
    inside = {keyword: value for keyword, value in document.items() if keyword not in _DEFINITIONS}
    told = (frozenset(_types(part)) for pointer, part in walk(inside) if pointer)
    return all(types and ("string" not in types or types <= {"string", "null"}) for types in told)


def _without_idle_type(document: Schema, told: frozenset[str]) -> Schema:
    """What a reference leads to says its types itself. Backends read a reference that stands alone."""
    alone = {keyword: value for keyword, value in document.items() if keyword != "type"}
    is_idle = "$ref" in document and all(is_inferred(kind, told) for kind in PossibleTypes(document).of(alone))
    return alone if is_idle else document


def _defined(document: Schema) -> Schema:
    return {key: document[key] for key in _DEFINITIONS if key in document}


def is_inferred(kind: str, told: frozenset[str]) -> bool:
    return kind in told or (kind == "number" and "integer" in told)


def _cases(document: Schema, closed: bool, formats: bool) -> Cases:
    """Raises GrammarError: not everything is known of it."""
    schemas = References(dict(walk(schema_of(document, closed, formats).normal))).schemas
    return Reader(Document(schemas)).cases(At(""))


def inferred_types(schema: Json, conversion: Conversion = Conversion.ALL_TYPES) -> frozenset[str]:
    """What the reader takes an argument's types to be, from its schema alone; where that says nothing, a string."""
    match conversion:
        case Conversion.ALL_TYPES:
            return frozenset(_types(schema)) or frozenset({"string"})
        case Conversion.DIRECT_TYPES:
            return _direct_types(schema)
        case Conversion.STRING_OR_JSON:
            return frozenset({"string"}) if isinstance(schema, dict) and schema.get("type") == "string" else EVERY_TYPE
        case Conversion.WRITTEN_TYPES | Conversion.JSON_OR_STRING:
            return EVERY_TYPE


def _direct_types(schema: Json) -> frozenset[str]:
    """None, where the reader fails: at a schema, or a branch, that is no object, and a branch whose `type` is an array."""
    if not isinstance(schema, dict):
        return frozenset()
    if "type" in schema:
        return frozenset(_types({"type": schema["type"]}))
    branches = schema.get("anyOf", schema.get("oneOf", [{}]))
    told = [branch.get("type", "string") if isinstance(branch, dict) else None for branch in _listed(branches)]
    return frozenset(kind for kind in told if isinstance(kind, str)) if all(isinstance(kind, str) for kind in told) else frozenset()


def _types(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    yield from (one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str))
    values = schema.get("enum")
    yield from (_OF_VALUES[type(value)] for value in (values if isinstance(values, list) else ()))
    for keyword in ("anyOf", "oneOf", "allOf"):
        for branch in _listed(schema.get(keyword)):
            yield from inferred_types(branch)


def with_explicit_types(schema: Schema, conversion: Conversion = Conversion.ALL_TYPES) -> Schema:
    """A schema of arguments whose members say their types where the reader would not find them; the same object, if all do."""
    told: Schema = {}
    possible = PossibleTypes(schema)
    for name, member in dict_at(schema, "properties").items():
        if member is not True and not isinstance(member, dict):
            continue
        types, inferred = possible.of(member), inferred_types(member, conversion)
        if conversion is Conversion.STRING_OR_JSON:
            is_told = member is not True and (types != {"string"} or inferred == {"string"})
        else:
            is_told = all(is_inferred(kind, inferred) for kind in types)
        if types <= EVERY_TYPE | {"integer"} and not is_told:
            told[name] = {**(member if isinstance(member, dict) else {}), "type": _type_of(types, conversion)}
    return {**schema, "properties": {**dict_at(schema, "properties"), **told}} if told else schema


def _type_of(types: frozenset[str], conversion: Conversion) -> Json:
    return "string" if types == {"string"} and conversion is Conversion.STRING_OR_JSON else [*sorted(types)]


EVERY_TYPE = frozenset(_OF_VALUES.values()) - {"integer"}


class PossibleTypes:
    """Of schemas of one document, as far as they can be told without what is inside of values. Of more than MOST_READ, nothing is."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._known: dict[str, frozenset[str]] = {}
        self._left = MOST_READ

    def of(self, schema: Json, depth: int = 0) -> frozenset[str]:
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0 or depth > MOST_DEPTH:
            return EVERY_TYPE
        said = [frozenset(_types({"type": schema["type"]}))] if "type" in schema else []
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        said += [frozenset(_OF_VALUES[type(value)] for value in values)] if isinstance(values, list) else []
        for branches in (schema.get("anyOf"), schema.get("oneOf")):
            if isinstance(branches, list):
                said.append(frozenset[str]().union(*(self.of(branch, depth + 1) for branch in branches)))
        said += [self.of(branch, depth + 1) for branch in _listed(schema.get("allOf"))]
        if isinstance(reference := schema.get("$ref"), str):
            said.append(self._referred(reference, depth))
        of_one = [kind for kind, keywords in BY_TYPE.items() if keywords & schema.keys()]
        return frozenset.intersection(*said) if said else frozenset(of_one) if len(of_one) == 1 else EVERY_TYPE

    def _referred(self, reference: str, depth: int) -> frozenset[str]:
        """Where it leads nowhere, the schema is refused later; where it leads back, it says nothing."""
        if reference not in self._known:
            self._known[reference] = EVERY_TYPE
            with suppress(LookupError, UnicodeDecodeError):
                self._known[reference] = self.of(resolve(self._root, of_fragment(reference.removeprefix("#"))), depth + 1)
        return self._known[reference]


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
