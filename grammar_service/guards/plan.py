"""What a grammar of JSON texts needs guarded: decided once, where its schema is read, and carried in its payload."""

from __future__ import annotations

import msgspec

from grammar_service.guards.guard import Guard
from grammar_service.guards.name_tokens import NameTokens
from grammar_service.guards.open_objects import has_open_objects, may_run_out
from grammar_service.schema.json_text import Json


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a grammar whose objects may have names that it does not list: no object has one twice."""

    def guard(self, tokens: NameTokens) -> Guard:
        """For one request, at the start of its text."""
        return Guard(tokens)


def plan_of(document: Json) -> Plan | None:
    """For a schema document that a backend enforces, None where there is nothing to guard, or where a guard might leave nothing."""
    return Plan() if has_open_objects(document) and not may_run_out(document) else None
