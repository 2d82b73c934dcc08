"""What llguidance 1.7.6 enforces exactly of a schema in normal form. It refuses by itself what it has not implemented; this
list keeps out what it approximates, and names keywords before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from grammar_service.backends.llguidance.load_cost import MAX_TEXT
from grammar_service.backends.llguidance.sequences import sequence_faults
from grammar_service.backends.patterns import plain_text_patterns
from grammar_service.errors import GrammarError
from grammar_service.guards.open_objects import is_open, may_run_out
from grammar_service.guards.places import PATTERN_EFFORT
from grammar_service.guards.plan import guard_faults
from grammar_service.limits import MAX_COUNT
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.other_strings import MAX_EXCLUDED_LENGTH
from grammar_service.regexes.plain import plain_pattern
from grammar_service.schema.fault import Fault
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import ANY_ORDER, SEQUENCE, Schema, dict_at, list_at, walk
from grammar_service.schema.normal_form.normal import composes
from grammar_service.schema.pointer import join
from grammar_service.schema.references import asserting

LOOK_AROUND_EFFORT = 1_000_000
"""Steps for the look-around of all patterns of one document: about a second."""
_INT64 = 2**63
_SMALLEST, _LARGEST = 1e-80, float(2**63 - 2048)
"""Bounds that are written as floats: the library makes no regex of longer ones, and reads those next to 2⁶³ as 2⁶³."""
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
    yield from sequence_faults(document) if rewritten else ()
    schemas = list(walk(document))
    effort = Effort(LOOK_AROUND_EFFORT)
    composed = not rewritten and any(composes(schema) for _, schema in schemas)
    for pointer, schema in schemas:
        if isinstance(schema, dict):
            yield from _faults(schema, pointer, rewritten)
            yield from _unreadable(schema, pointer, effort)
            if not rewritten and schema.get("patternProperties"):
                yield from _pattern_faults(schema, pointer, composed)
            if (least := schema.get("minProperties")) and not (rewritten or _is_one_more(schema, least) or _is_counted(schema)):
                yield Fault(join(pointer, "minProperties"), "`minProperties` is not enforced, since a grammar cannot tell names apart")


def _faults(schema: Schema, pointer: str, rewritten: bool) -> Iterator[Fault]:
    for keyword in sorted(asserting(schema) - (_ALLOWED | {SEQUENCE, ANY_ORDER} if rewritten else _ALLOWED)):
        yield Fault(join(pointer, keyword), f"`{keyword}` is not enforced")
    for keyword in ("minItems", "maxItems", "maxProperties"):
        if isinstance(count := schema.get(keyword), int) and count > MAX_COUNT:
            yield Fault(join(pointer, keyword), f"`{keyword}` above {MAX_COUNT} is not supported")
    if "maxProperties" in schema and _may_leave_out(schema):
        yield Fault(join(pointer, "maxProperties"), "`maxProperties` is not counted where listed properties may be left out")
    if schema.get("additionalProperties", True) is not False and _longest_name(schema) > MAX_EXCLUDED_LENGTH:
        yield Fault(join(pointer, "properties"), "so long a name is not kept apart from additional properties")
    if _longest_name(schema) > MAX_TEXT:
        yield Fault(join(pointer, "properties"), f"a name of more than {MAX_TEXT} bytes is too long for its masks")
    for keyword in ("enum", "const"):
        if keyword in schema and longest_text(schema[keyword]) > MAX_TEXT:
            yield Fault(join(pointer, keyword), f"a text of more than {MAX_TEXT} bytes is too long for its masks")
    if "multipleOf" in schema and not any(_is_positive(schema.get(bound)) for bound in ("minimum", "exclusiveMinimum")):
        yield Fault(join(pointer, "multipleOf"), "negative multiples cannot be written: add `minimum: 0`")
    for keyword in _inexact_numbers(schema):
        yield Fault(join(pointer, keyword), f"`{keyword}` with so large or so small a number is not enforced")


def longest_text(value: Json) -> int:
    """Bytes of the longest text in a value, names too, without recursion."""
    longest, left = 0, [value]
    while left:
        match left.pop():
            case str(text):
                longest = max(longest, len(text.encode("utf-8", "surrogatepass")))
            case list(items):
                left += items
            case dict(members):
                left += [*members, *members.values()]
    return longest


def _may_leave_out(schema: Schema) -> bool:
    """Whether a property that is listed, and may be there, need not be."""
    required = set(map(str, list_at(schema, "required")))
    return any(member is not False and name not in required for name, member in dict_at(schema, "properties").items())


def _pattern_faults(schema: Schema, pointer: str, composed: bool) -> Iterator[Fault]:
    """The library asks of an additional name that is spelt with escapes nothing that patterns ask."""
    others = schema.get("additionalProperties", True)
    if composed:
        yield Fault(join(pointer, "patternProperties"), "`patternProperties` in a schema that is composed of others are not enforced")
    elif others is not False:
        yield Fault(join(pointer, "patternProperties"), "`patternProperties` where additional properties are allowed are not enforced")


def _longest_name(schema: Schema) -> int:
    return max(map(len, dict_at(schema, "properties")), default=0)


def _inexact_numbers(schema: Schema) -> Iterator[str]:
    """Keywords whose numbers the library widens or dies of: it computes with floats, which it then cuts to 64-bit integers."""
    for keyword, sign in (("minimum", -1), ("exclusiveMinimum", -1), ("maximum", 1), ("exclusiveMaximum", 1)):
        bound = schema.get(keyword)
        if isinstance(bound, int) and (sign * (_computed(bound) - bound) > 0 or _computed(bound) == -_INT64):
            yield keyword
        if isinstance(bound, float) and not (bound == 0 or _SMALLEST <= abs(bound) < _LARGEST):
            yield keyword
    for keyword in ("enum", "const"):
        if keyword in schema and not all(map(_is_kept, _numbers_in(schema[keyword]))):
            yield keyword


def _computed(bound: int) -> int:
    return max(-_INT64, min(_INT64 - 1, round(float(max(-2 * _INT64, min(2 * _INT64, bound))))))


def _is_kept(number: int | float) -> bool:
    return isinstance(number, float) or (abs(number) < _INT64 and round(float(number)) == number)


def _numbers_in(value: Json) -> Iterator[int | float]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (int, float)) and not isinstance(part, bool):
            yield part
        waiting.extend(part if isinstance(part, list) else part.values() if isinstance(part, dict) else ())


def _is_positive(bound: Json) -> bool:
    return isinstance(bound, (int, float)) and bound >= 0


def _is_one_more(schema: Schema, least: Json) -> bool:
    return isinstance(least, int) and least <= 1 + len(list_at(schema, "required"))


def _is_counted(schema: Schema) -> bool:
    """Whether all its names are required, or never run out and are kept from coming twice by a guard."""
    all_required = dict_at(schema, "properties").keys() <= set(map(str, list_at(schema, "required")))
    return all_required and is_open(schema) and not may_run_out(schema, Effort(PATTERN_EFFORT))


def _unreadable(schema: Schema, pointer: str, effort: Effort) -> Iterator[Fault]:
    """Patterns that have no plain form."""
    try:
        plain_text_patterns(schema, effort)
    except GrammarError as error:
        yield Fault(join(pointer, "pattern" if "pattern" in schema else "format"), error.message)
    for name in dict_at(schema, "patternProperties"):
        try:
            plain_pattern(name, effort)
        except GrammarError as error:
            yield Fault(join(pointer, "patternProperties", name), error.message)
