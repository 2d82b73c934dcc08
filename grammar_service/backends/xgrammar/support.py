"""What xgrammar 0.2.8 enforces exactly of a schema in normal form: an allow-list, each entry tried on valid and invalid instances.

It ignores, without an error, whatever stands beside `$ref`, `anyOf`, `allOf`, `enum` or `const`, all branches of an `allOf` after
the first, length bounds beside `pattern` or `format`, names that are required but not declared, and most of `patternProperties`.
Strings with a `pattern` or length bounds may hold raw control characters, and some patterns are compiled to another language
(`a(?:\\.[0-9]{1,9})?b` matches "a11b"): patterns are left to the other backend, bounds are rewritten (`with_length_patterns`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grammar_service.guards.plan import guard_faults
from grammar_service.schema.fault import AllowList, Fault
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import BY_TYPE, Schema, dict_at, list_at, walk
from grammar_service.schema.normal_form.normal import types_of
from grammar_service.schema.pointer import join
from grammar_service.schema.references import asserting
from grammar_service.spec import GrammarKind, GrammarSpec, indent_of

_ALONE = ("$ref", "anyOf", "allOf", "enum", "const")
_ALLOWED = {
    "string": frozenset({"minLength", "maxLength", "format"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"properties", "required", "additionalProperties", "maxProperties"}),
}
_FORMATS = frozenset({"uuid"})
"""It compiles formats as it does patterns, wrongly where something is optional; `uuid` has nothing optional."""
_ALL_ALLOWED = frozenset({"type", *_ALONE}).union(*_ALLOWED.values())
MANY_VALUES = 1000
"""Compile time and payload grow faster than the number of enumerated values: 0.1 s at 1,000, 13 s at 10,000."""
LONGEST_STRING = 32
"""Compile time grows with a string's bounds, by 0.07 s a character on 131,072 tokens; beyond 128 the library fails (0.2.8)."""
_PLAIN_NAME = re.compile(r"[ !#-\[\]-~]*")
_PLAIN_REFERENCE = re.compile(r"#(?:/[A-Za-z_$][\w.$\-]*)+", re.ASCII)
_MAX_STEP = 1024
_MAX_EXACT = 10**9
"""Bounds beyond this are refused: the library computes with machine integers."""


def xgrammar_faults(document: Schema, rewritten: bool = False) -> Iterator[Fault]:
    """The keywords of a document in normal form, or `rewritten`, that xgrammar would weaken or fail on, with their pointers."""
    yield from guard_faults(document, writes_all=False)
    closing = set[str]()
    for pointer, schema in walk(document):
        if isinstance(schema, dict):
            closing |= {join(pointer, keyword) for keyword in ("additionalProperties", "items")}
            yield from _faults(schema, pointer)
            if message := _respelt(schema) or _unsupported_names(schema):
                yield Fault(join(pointer, "properties"), message)
        elif schema is False and pointer not in closing:
            yield Fault(pointer, "the schema `false` is not supported here")


def lone_xgrammar_faults(document: Schema, rewritten: bool = False) -> Iterator[Fault]:
    """The same for what no other backend writes, structural tags and indented JSON: there additional names have no escapes that could
    spell a declared one (`recipe`)."""
    respelt = {
        join(pointer, "properties")
        for pointer, schema in walk(document)
        if isinstance(schema, dict) and _respelt(schema) and not _unsupported_names(schema)
    }
    # No other backend would step in, so that a rewrite is tried whatever its chances.
    faults = xgrammar_faults(document, rewritten)
    yield from (Fault(fault.pointer, fault.message) for fault in faults if fault.pointer not in respelt)
    unique = [pointer for pointer, schema in walk(document) if isinstance(schema, dict) and "uniqueItems" in schema]
    # Structural tags have no guard.
    yield from (Fault(join(pointer, "uniqueItems"), "`uniqueItems` is not enforced here") for pointer in unique)


def allow_list(spec: GrammarSpec) -> AllowList:
    """The one of the two that is meant for a spec."""
    lone = spec.kind is GrammarKind.STRUCTURAL_TAG or indent_of(spec.whitespace) is not None
    return lone_xgrammar_faults if lone else xgrammar_faults


def _faults(schema: Schema, pointer: str) -> Iterator[Fault]:
    said = asserting(schema)
    for keyword in sorted(said - _ALL_ALLOWED):
        yield Fault(join(pointer, keyword), f"`{keyword}` is not enforced", lasting=keyword == "pattern")
    for keyword in _ALONE:
        if keyword in said and len(said) > 1:
            yield Fault(join(pointer, keyword), f"`{keyword}` beside other keywords is not enforced")
    if said and not said & {"type", *_ALONE}:
        yield Fault(pointer or "", "a `type` is needed beside these keywords")
    for keyword, check in (("$ref", _reference), ("allOf", _all_of), ("required", _required), ("enum", _enum), ("const", _const)):
        if keyword in said and (message := check(schema)):
            yield Fault(join(pointer, keyword), message)
    if said & BY_TYPE["string"]:
        yield from _string(schema, pointer)
    if said & BY_TYPE["number"]:
        yield from _number(schema, pointer)
    yield from _array(schema, pointer)


def _reference(schema: Schema) -> str | None:
    text = str(schema["$ref"])
    return None if text == "#" or _PLAIN_REFERENCE.fullmatch(text) else "only plain references into objects are followed"


def _all_of(schema: Schema) -> str | None:
    return "only one branch of `allOf` is enforced" if len(list_at(schema, "allOf")) > 1 else None


def _const(schema: Schema) -> str | None:
    return _spaced([schema["const"]])


def _spaced(values: Json) -> str | None:
    """The library writes the values without the spaces that it puts everywhere else."""
    parts = isinstance(values, list) and any(isinstance(value, (list, dict)) and value for value in values)
    return "arrays and objects among the values are not laid out as the rest is" if parts else None


def _enum(schema: Schema) -> str | None:
    values = schema["enum"]
    if spaced := _spaced(values):
        return spaced
    return "so many values take too long to compile" if isinstance(values, list) and len(values) > MANY_VALUES else None


def _required(schema: Schema) -> str | None:
    declared = all(name in dict_at(schema, "properties") for name in list_at(schema, "required"))
    return None if declared else "a required name that is not in `properties` is not enforced"


def _respelt(schema: Schema) -> str | None:
    """The library lets additional names be spelt with escapes, so that a declared one could come again with another value."""
    properties, others = dict_at(schema, "properties"), schema.get("additionalProperties", True)
    if others is False or all(_same(member, others) for member in properties.values()):
        return None
    return "a declared property is not enforced where additional ones are allowed, since escapes may spell its name"


def _unsupported_names(schema: Schema) -> str | None:
    """The library excludes declared names from additional ones byte by byte, without JSON's escapes. For a declared `a"b` it therefore
    accepts `"a"c"`, and for `é` half a character."""
    if schema.get("additionalProperties", True) is False or all(map(_PLAIN_NAME.fullmatch, dict_at(schema, "properties"))):
        return None
    return "a declared property whose name has more than plain ASCII is not enforced where additional ones are allowed"


def _same(member: Json, others: Json) -> bool:
    return member == others or (member in (True, {}) and others in (True, {}))


def _string(schema: Schema, pointer: str) -> Iterator[Fault]:
    if "format" in schema and {"minLength", "maxLength"} & schema.keys():
        yield Fault(join(pointer, "format"), "`format` and length bounds are not enforced together", lasting=True)
    if "format" in schema and schema["format"] not in _FORMATS:
        yield Fault(join(pointer, "format"), f"format {str(schema['format'])[:40]!r} is not enforced", lasting=True)
    for keyword in ("minLength", "maxLength"):
        if isinstance(count := schema.get(keyword), int) and count > LONGEST_STRING:
            yield Fault(join(pointer, keyword), f"`{keyword}` above {LONGEST_STRING} takes too long to compile", lasting=True)


def _number(schema: Schema, pointer: str) -> Iterator[Fault]:
    whole = "integer" in types_of(schema)
    if "multipleOf" in schema and not _is_counted(schema):
        yield Fault(join(pointer, "multipleOf"), "`multipleOf` is not enforced, but of whole numbers without bounds")
    for keyword in sorted(_ALLOWED["number"] & schema.keys() - {"multipleOf"}):
        bound = schema[keyword]
        if not _is_exact(bound) or (whole and isinstance(bound, float)):
            yield Fault(join(pointer, keyword), f"`{keyword}` with this bound is not enforced")


def _is_counted(schema: Schema) -> bool:
    """A multiple that the library enforces: with a bound on one side it drops `multipleOf`, and it does for larger steps."""
    step = schema["multipleOf"]
    alone = not schema.keys() & (_ALLOWED["number"] - {"multipleOf"})
    return types_of(schema) == ["integer"] and alone and isinstance(step, int) and step <= _MAX_STEP


def _is_exact(bound: Json) -> bool:
    if not isinstance(bound, (int, float)) or abs(bound) > _MAX_EXACT:
        return False
    return isinstance(bound, int) or float(round(bound, 6)) == bound


def _array(schema: Schema, pointer: str) -> Iterator[Fault]:
    most = schema.get("maxItems")
    if isinstance(most, (int, float)) and most < len(list_at(schema, "prefixItems")):
        yield Fault(join(pointer, "maxItems"), "`maxItems` below the number of `prefixItems` is not supported")
