"""What a user should know of how a schema was read: what asserts nothing, and what another dialect would read in another way."""

from __future__ import annotations

from collections.abc import Iterator

from grammar_service.schema.dialects.dialect import DEFINITIONS, Dialect
from grammar_service.schema.dialects.survey import Survey
from grammar_service.schema.keywords import IDENTIFIERS, Schema
from grammar_service.schema.pointer import join
from grammar_service.warning import ConstraintWarning, meant

UNKNOWN_KEYWORD = "unknown_keyword"
NO_EFFECT = "no_effect"
TWO_READINGS = "two_readings"
SHOWN = 60
"""Characters of an unknown keyword that a message repeats."""
_BESIDE_REFERENCES = DEFINITIONS | IDENTIFIERS | {"$ref", "id", "nullable"}


def remarks(survey: Survey) -> Iterator[ConstraintWarning]:
    """Unknown keywords first: a request may ask for none."""
    for pointer, schema in survey.schemas.items():
        if isinstance(schema, dict):
            yield from _unknown(pointer, schema, survey)
    for pointer, schema in survey.schemas.items():
        if isinstance(schema, dict):
            yield from _misleading(pointer, schema, survey)


def _unknown(pointer: str, schema: Schema, survey: Survey) -> Iterator[ConstraintWarning]:
    dialect = survey.stands[pointer].scope.dialect
    for keyword in schema:
        if dialect.is_unknown(keyword) and join(pointer, keyword) not in survey.entered:
            shown = keyword[:SHOWN]
            message = f"`{shown}` is not a keyword of JSON Schema {dialect.name} and asserts nothing."
            yield ConstraintWarning(UNKNOWN_KEYWORD, join(pointer, shown), message, meant(shown, dialect.known - IDENTIFIERS))


def _misleading(pointer: str, schema: Schema, survey: Survey) -> Iterator[ConstraintWarning]:
    scope = survey.stands[pointer].scope
    for keyword, message in _without_effect(schema, scope.dialect):
        yield ConstraintWarning(NO_EFFECT, join(pointer, keyword), message)
    if scope.dialect.is_certain or "$ref" not in schema:
        return
    if any(keyword in scope.dialect.known and keyword not in _BESIDE_REFERENCES for keyword in schema):
        message = "What stands beside `$ref` is ignored up to draft-07 and applied here, as since 2019-09; `$schema` chooses."
        yield ConstraintWarning(TWO_READINGS, join(pointer, "$ref"), message)
    if scope.base_resource != scope.resource and str(schema["$ref"]).startswith("#"):
        message = "In draft-04, `#` means the schema that an `id` names around it, here the whole document; `$schema` chooses."
        yield ConstraintWarning(TWO_READINGS, join(pointer, "$ref"), message)


def _without_effect(schema: Schema, dialect: Dialect) -> Iterator[tuple[str, str]]:
    if schema.get("nullable") is True and "type" not in schema and dialect.reads("nullable", schema):
        yield "nullable", "`nullable` adds null to the `type` beside it (OpenAPI 3.0.3); without one it asserts nothing."
    if "additionalItems" in schema and not isinstance(schema.get("items"), list) and dialect.reads("additionalItems", schema):
        yield "additionalItems", "`additionalItems` is about items behind an array of `items`; without one it asserts nothing."
