"""A validator that reads what rewrites say of arrays beyond JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

from grammar_service.schema.keywords import SEQUENCE


def _sequence(validator: Any, told: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, list):
        return
    states = {0}
    for item in instance:
        kinds = {index for index, kind in enumerate(schema["prefixItems"]) if validator.evolve(schema=kind).is_valid(item)}
        states = {end for start, kind, end in told["edges"] if start in states and kind in kinds}
    if states.isdisjoint(told["ends"]):
        yield ValidationError("no way through the sequence")


def _unless_sequence(keyword: str) -> Any:
    plain = Draft202012Validator.VALIDATORS[keyword]
    return lambda validator, value, instance, schema: () if SEQUENCE in schema else plain(validator, value, instance, schema)


_VALIDATORS: Any = validators
RewriteValidator: Any = _VALIDATORS.extend(
    Draft202012Validator, {SEQUENCE: _sequence, "prefixItems": _unless_sequence("prefixItems"), "items": _unless_sequence("items")}
)
