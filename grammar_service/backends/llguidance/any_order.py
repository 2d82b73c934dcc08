"""Objects whose members come in any order, each once, the required ones all there before the object closes.

No library has them. Patterns of names come in any order, and as often as one likes; a guard (`guards.guard`) keeps each from coming twice
and the object from closing too soon. It must know which object it stands in, so that the order of `properties` stays where several objects
may stand in one place. It stays, too, where a bound from above could be met before all required members are there, beside patterns of
names, which a beginning might leave with listed names alone, and inside of items of which none may come twice, which are told apart by the
order of their members.
"""

from __future__ import annotations

import re

from grammar_service.errors import UnsupportedGrammar
from grammar_service.guards.places import objects_sharing_places
from grammar_service.regexes.other_strings import pattern_of_others
from grammar_service.regexes.rendering import literal
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import ANY_ORDER, Schema, dict_at, mapped, mapped_at, walk
from grammar_service.schema.references import References

MOST_NAMES = 100
"""Of an object: each is a pattern of its own, which the library compares with all others in each mask."""
_NAME = re.compile(r'[^\x00-\x1f"\\\x7f\ud800-\udfff]{0,200}')
"""One that is written as it is, since an escape that has begun does not tell the guard what may follow; longer ones the library may not
tell apart."""


def with_any_order(document: Schema) -> Schema:
    """A rewrite, with `ANY_ORDER` in each object that can have it."""
    references = References(dict(walk(document)))
    objects = {pointer for pointer, schema in references.schemas.items() if isinstance(schema, dict) and _can_have(schema)}
    objects -= _in_distinct_items(references)
    try:
        objects -= objects_sharing_places(document, objects)
    except UnsupportedGrammar:  # more places than are followed
        return document

    def marked(schema: Json, pointer: str) -> Json:
        if not isinstance(schema, dict):
            return schema
        return mapped_at(pointer, {**schema, ANY_ORDER: True} if pointer in objects else schema, marked)

    changed = marked(document, "")
    assert isinstance(changed, dict), "a schema stays one"
    return changed


def has_any_order(document: Schema) -> bool:
    """Whether some object of it has."""
    return any(isinstance(schema, dict) and ANY_ORDER in schema for _, schema in walk(document))


def keeps_declared_order(document: Schema) -> bool:
    """Whether some object of a rewrite, or of a normal form, has members that only come in the order of `properties`."""
    return any(isinstance(schema, dict) and ANY_ORDER not in schema and _members(schema) > 1 for _, schema in walk(document))


def with_names_as_patterns(schema: Json) -> Json:
    """A copy for the library, less what the guard enforces."""
    if not isinstance(schema, dict):
        return schema
    copy = mapped(schema, with_names_as_patterns)
    if not copy.pop(ANY_ORDER, False):
        return copy
    properties, others = copy.pop("properties"), copy.get("additionalProperties", True)
    assert isinstance(properties, dict), "only such objects have it"
    patterns = {f"^(?:{literal(name)})$": member for name, member in properties.items() if member is not False}
    patterns |= {} if others is False else {pattern_of_others(properties): others}
    copy.pop("required", None)
    return {**copy, "patternProperties": patterns, "additionalProperties": False}


def _in_distinct_items(references: References) -> set[str]:
    """The schemas of items of which none may come twice, and of what is in these."""
    unique = [pointer for pointer, schema in references.schemas.items() if isinstance(schema, dict) and schema.get("uniqueItems")]
    return references.inside(at for pointer in unique for at in references.parts(pointer))


def _can_have(schema: Schema) -> bool:
    properties = dict_at(schema, "properties")
    if _members(schema) < 2 or len(properties) > MOST_NAMES:
        return False
    return not {"maxProperties", "patternProperties"} & schema.keys() and all(map(_NAME.fullmatch, properties))


def _members(schema: Schema) -> int:
    """How many names, or kinds of names, of which one is listed at least; 0: there is no choice of an order."""
    listed = sum(member is not False for member in dict_at(schema, "properties").values())
    return listed and listed + (schema.get("additionalProperties", True) is not False) + len(dict_at(schema, "patternProperties"))
