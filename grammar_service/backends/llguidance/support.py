"""What llguidance 1.7.6 enforces exactly of a schema in normal form. It refuses by itself what it has not implemented; this
list keeps out what it approximates, and names keywords before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from grammar_service.errors import GrammarError
from grammar_service.guards.open_objects import is_open, may_run_out
from grammar_service.guards.places import PATTERN_EFFORT
from grammar_service.guards.plan import guard_faults
from grammar_service.regexes.dialect import Dialect
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.other_strings import MAX_EXCLUDED_LENGTH
from grammar_service.regexes.regex import parse_regex
from grammar_service.schema.fault import Fault
from grammar_service.schema.formats import LLGUIDANCE_FORMATS
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, walk
from grammar_service.schema.normal_form.normal import composes
from grammar_service.schema.pointer import join
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
        "uniqueItems",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
    }
)


def llguidance_faults(document: Schema, rewritten: bool = False) -> Iterator[Fault]:
    """The keywords of a document in normal form that llguidance would not enforce, with their pointers.

    `rewritten`: patterns match no named properties, and nothing is composed.
    """
    yield from guard_faults(document)
    schemas = list(walk(document))
    composed = not rewritten and any(composes(schema) for _, schema in schemas)
    for pointer, schema in schemas:
        if isinstance(schema, dict):
            yield from _faults(schema, pointer)
            if not rewritten and schema.get("patternProperties"):
                yield from _pattern_faults(schema, pointer, composed)
            if (least := schema.get("minProperties")) and not (rewritten or _is_one_more(schema, least) or _is_counted(schema)):
                yield Fault(join(pointer, "minProperties"), "`minProperties` is not enforced, since a grammar cannot tell names apart")


def _faults(schema: Schema, pointer: str) -> Iterator[Fault]:
    for keyword in sorted(asserting(schema) - _ALLOWED):
        yield Fault(join(pointer, keyword), f"`{keyword}` is not enforced")
    for keyword in ("minItems", "maxItems", "maxProperties"):
        if isinstance(count := schema.get(keyword), int) and count > MAX_COUNT:
            yield Fault(join(pointer, keyword), f"`{keyword}` above {MAX_COUNT} is not supported")
    if schema.get("additionalProperties", True) is not False and _longest_name(schema) > MAX_EXCLUDED_LENGTH:
        yield Fault(join(pointer, "properties"), "so long a name is not kept apart from additional properties")
    for where, pattern in _patterns(schema, pointer):
        try:
            parse_regex(pattern, Dialect.ECMA)
        except GrammarError as error:
            yield Fault(where, error.message)
    if "multipleOf" in schema and not any(_is_positive(schema.get(bound)) for bound in ("minimum", "exclusiveMinimum")):
        yield Fault(join(pointer, "multipleOf"), "negative multiples cannot be written: add `minimum: 0`")
    if "format" in schema and schema["format"] not in LLGUIDANCE_FORMATS:
        yield Fault(join(pointer, "format"), f"format {str(schema['format'])[:40]!r} is not enforced")


def _pattern_faults(schema: Schema, pointer: str, composed: bool) -> Iterator[Fault]:
    """The library asks of an additional name that is spelt with escapes nothing that patterns ask."""
    others = schema.get("additionalProperties", True)
    if composed:
        yield Fault(join(pointer, "patternProperties"), "`patternProperties` in a schema that is composed of others are not enforced")
    elif others is not False:
        yield Fault(join(pointer, "patternProperties"), "`patternProperties` where additional properties are allowed are not enforced")


def _longest_name(schema: Schema) -> int:
    names = schema.get("properties")
    return max(map(len, names), default=0) if isinstance(names, dict) else 0


def _is_positive(bound: Json) -> bool:
    return isinstance(bound, (int, float)) and bound >= 0


def _is_one_more(schema: Schema, least: Json) -> bool:
    required = schema.get("required")
    return isinstance(least, int) and least <= 1 + (len(required) if isinstance(required, list) else 0)


def _is_counted(schema: Schema) -> bool:
    """Whether all its names are required, or never run out and are kept from coming twice by a guard."""
    required, properties = schema.get("required"), schema.get("properties")
    listed = set(properties) if isinstance(properties, dict) else set()
    return (
        listed <= set(required if isinstance(required, list) else ())
        and is_open(schema)
        and not may_run_out(schema, Effort(PATTERN_EFFORT))
    )


def _patterns(schema: Schema, pointer: str) -> Iterator[tuple[str, str]]:
    pattern: Json = schema.get("pattern")
    if isinstance(pattern, str):
        yield join(pointer, "pattern"), pattern
    names = schema.get("patternProperties")
    for name in names if isinstance(names, dict) else ():
        yield join(pointer, "patternProperties", name), name
