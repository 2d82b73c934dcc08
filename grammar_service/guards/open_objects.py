"""Objects with names that their schema does not list, so that a grammar would let one come twice."""

from __future__ import annotations

from grammar_service.errors import GrammarError
from grammar_service.regexes.effort import Effort
from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.unending import never_runs_out
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, dict_at, list_at, subschemas
from grammar_service.schema.normal_form.normal import types_of

_SAYS_ALL = frozenset({"enum", "const", "$ref", "anyOf", "allOf", "oneOf"})
"""Values and references are listed; branches are looked at one by one."""


def has_open_objects(document: Json) -> bool:
    """Whether some value of the schema has an object with names that it does not list. In doubt it has."""
    waiting = [document]
    while waiting:
        schema = waiting.pop()
        if schema is False:
            continue
        if not isinstance(schema, dict) or is_open(schema):
            return True
        waiting += [inner for _, inner in subschemas("", schema)]
    return False


def may_run_out(schema: Schema, effort: Effort) -> bool:
    """Whether an object of the schema may have all the names that it can have. In doubt it may, and where the effort is spent."""
    patterns = dict_at(schema, "patternProperties")
    if not patterns or schema.get("additionalProperties", True) is not False:
        return False
    try:
        return not all(never_runs_out(StringSet.of_pattern(pattern, effort)) for pattern in patterns)
    except GrammarError:
        return True


def is_open(schema: Schema) -> bool:
    """The same, of what the schema says without its subschemas."""
    if _SAYS_ALL & schema.keys():
        return False
    types = types_of(schema) or ["array", "object"]
    opens = "object" in types and (schema.get("additionalProperties", True) is not False or bool(schema.get("patternProperties")))
    return opens or ("array" in types and "items" not in schema and not _ends_with_prefix(schema))


def _ends_with_prefix(schema: Schema) -> bool:
    most = schema.get("maxItems")
    return isinstance(most, (int, float)) and most <= len(list_at(schema, "prefixItems"))
