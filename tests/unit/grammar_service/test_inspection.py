from __future__ import annotations

from grammar_service.inspection import inspect
from grammar_service.limits import Limits
from grammar_service.spec import GrammarKind, GrammarSpec


def schema(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, text)


def test_a_schema_that_both_enforce_starts_on_the_one_that_is_ready_at_once() -> None:
    found = inspect(schema('{"properties": {"a": {"type": "string"}}, "required": ["a"]}'))
    assert (found.served_by, found.first_by, found.refusal) == ("xgrammar", "llguidance", None)
    assert [opinion.faults for opinion in found.opinions] == [(), ()]


def test_what_one_backend_would_weaken_has_its_place() -> None:
    found = inspect(schema('{"type": "object", "properties": {"a": {"type": "string", "format": "email"}}}'))
    assert found.served_by == "llguidance"
    (fault,) = found.opinions[0].faults
    assert fault.pointer == "/properties/a/format"


def test_a_schema_that_nobody_enforces_is_refused_with_both_opinions() -> None:
    found = inspect(schema('{"type": "array", "items": {"type": "number", "minimum": 3}, "uniqueItems": true}'))
    assert found.served_by is None
    assert found.refusal is not None
    assert all(opinion.faults for opinion in found.opinions)


def test_what_is_no_schema_at_all_has_no_opinions() -> None:
    found = inspect(schema('{"type": "strin"}'))
    assert found.opinions == ()
    assert found.refusal is not None
    assert found.refusal.pointer == "/type"


def test_a_constraint_over_the_limits_is_refused() -> None:
    found = inspect(schema('{"type": "string"}' + " " * Limits().max_constraint_bytes))
    assert found.refusal is not None
    assert "limit" in found.refusal.message
