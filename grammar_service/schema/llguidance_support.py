"""What llguidance 1.7.6 enforces exactly of a schema in normal form. It refuses by itself what it has not implemented; this
list keeps out what it approximates, and names keywords before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from grammar_service.errors import GrammarError
from grammar_service.fault import Fault
from grammar_service.json_text import Json
from grammar_service.pointer import join
from grammar_service.regex import Dialect, parse_regex
from grammar_service.schema.formats import LLGUIDANCE_FORMATS
from grammar_service.schema.keywords import Schema, walk
from grammar_service.schema.references import asserting

MAX_COUNT = 100_000
"""The library expands counts of items when it loads a grammar, outside of any sandbox: a billion of them takes gigabytes."""
_ALLOWED = frozenset(
    {
        "type",
        "enum",
        "const",
        "$ref",
        "anyOf",
        "allOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "maxProperties",
    }
)


def llguidance_faults(document: Schema) -> Iterator[Fault]:
    """The keywords of a normal-form document that llguidance would not enforce, with their pointers."""
    for pointer, schema in walk(document):
        if isinstance(schema, dict):
            yield from _faults(schema, pointer)


def _faults(schema: Schema, pointer: str) -> Iterator[Fault]:
    for keyword in sorted(asserting(schema) - _ALLOWED):
        yield Fault(join(pointer, keyword), f"`{keyword}` is not enforced")
    for keyword in ("minItems", "maxItems", "maxProperties"):
        if isinstance(count := schema.get(keyword), int) and count > MAX_COUNT:
            yield Fault(join(pointer, keyword), f"`{keyword}` above {MAX_COUNT} is not supported")
    for where, pattern in _patterns(schema, pointer):
        try:
            parse_regex(pattern, Dialect.ECMA)
        except GrammarError as error:
            yield Fault(where, error.message)
    if "format" in schema and schema["format"] not in LLGUIDANCE_FORMATS:
        yield Fault(join(pointer, "format"), f"format {str(schema['format'])[:40]!r} is not enforced")


def _patterns(schema: Schema, pointer: str) -> Iterator[tuple[str, str]]:
    pattern: Json = schema.get("pattern")
    if isinstance(pattern, str):
        yield join(pointer, "pattern"), pattern
    names = schema.get("patternProperties")
    for name in names if isinstance(names, dict) else ():
        yield join(pointer, "patternProperties", name), name
