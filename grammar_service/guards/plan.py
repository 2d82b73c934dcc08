"""What a grammar of JSON texts needs guarded: decided once, where its schema is read, and carried in its payload."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from grammar_service.errors import UnsupportedGrammar
from grammar_service.guards.forms import CountedStrings, Form
from grammar_service.guards.guard import Guard
from grammar_service.guards.item_set import NUMBERED
from grammar_service.guards.open_objects import has_open_objects
from grammar_service.guards.places import Place, places_of
from grammar_service.guards.tokens.name_tokens import NameTokens
from grammar_service.schema.fault import Fault
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import ANY_ORDER, mapped, walk
from grammar_service.schema.pointer import join

_SHORT = "\b\f\n\r\t"
"""Control characters that have an escape of one letter. The others have one by their number alone."""
_GUARDED = frozenset({"uniqueItems", "minProperties", ANY_ORDER})
"""What is not enforced without a guard."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a grammar whose objects may have names that it does not list: no object has one twice. `places`: where no item may come twice;
    `forms`: of such items."""

    places: tuple[Place, ...] = ()
    forms: tuple[Form, ...] = ()

    def strings(self) -> Iterator[CountedStrings]:
        """Those that are counted."""
        found = [place.distinct.strings for place in self.places if place.distinct is not None] + [form.strings for form in self.forms]
        yield from (strings for strings in found if strings is not None)

    def guard(self, tokens: NameTokens) -> Guard:
        """For one request, at the start of its text."""
        return Guard(tokens, self.places, self.forms)


def plan_of(document: Json) -> Plan | None:
    """For a schema document that a backend enforces with its guard, None where there is nothing to guard, or where nobody can tell which
    objects may run out of names. Raises UnsupportedGrammar: `guard_faults` has a fault."""
    try:
        found = places_of(document)
    except UnsupportedGrammar:
        if any(isinstance(schema, dict) and not _GUARDED.isdisjoint(schema) for _, schema in walk(document)):
            raise
        return None
    return Plan(found.places, found.forms) if found.places or has_open_objects(document) else None


def guard_faults(document: Json, writes_all: bool = True) -> Iterator[Fault]:
    """What of a document in normal form no guard enforces, though it is for guards. `writes_all`: every string of a schema can be written,
    so that it may be counted on."""
    try:
        plan = plan_of(document)
    except UnsupportedGrammar as error:
        yield Fault(error.pointer, error.message)
        return
    if not writes_all and plan is not None and any(map(_need_all_written, plan.strings())):
        first = next(pointer for pointer, schema in walk(document) if isinstance(schema, dict) and schema.get("uniqueItems"))
        yield Fault(join(first, "uniqueItems"), "`uniqueItems` of strings that may run out is enforced only where all of them are written")


def _need_all_written(strings: CountedStrings) -> bool:
    """Whether one of some strings may be counted on that is not written, or not in each way that its escapes have."""
    return strings.language is not None or any(char in text for text in strings.listed for char in NUMBERED if char not in _SHORT)


def without_guarded(schema: Json) -> Json:
    """A copy without the keywords that guards enforce; recursion is bounded by `parse_json`'s nesting."""
    if not isinstance(schema, dict):
        return schema
    return {keyword: value for keyword, value in mapped(schema, without_guarded).items() if keyword != "uniqueItems"}
