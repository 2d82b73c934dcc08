"""A document of any dialect as one of draft 2020-12: without names, unknown keywords and older forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.dialects.dialect import DRAFT_2019_09
from grammar_service.schema.dialects.places import Places
from grammar_service.schema.dialects.remarks import remarks
from grammar_service.schema.dialects.survey import REFERENCES, Survey
from grammar_service.schema.dialects.writer import BOUNDS, NAMES, Writer, is_silent_format
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import walk
from grammar_service.schema.pointer import join
from grammar_service.warning import ConstraintWarning, first

_FORMS = frozenset({*REFERENCES, *BOUNDS, "items", "additionalItems", "dependencies", "nullable"})
"""Keywords that may be written otherwise in 2020-12."""


@dataclass(frozen=True)
class Translation:
    """`schemas` are those of `document` by pointer; `places` know where they stand in the user's own text, as do the `warnings`.
    `foreign` is the user's pointer of a `$schema` that names no dialect that is known."""

    document: Json
    schemas: Mapping[str, Json]
    places: Places
    warnings: tuple[ConstraintWarning, ...]
    foreign: str | None


def translated(document: Json, formats: bool = True) -> Translation:
    """Read a schema of any dialect; without `formats`, `format` is an annotation. The same object is its translation where there is nothing
    to translate. Time linear in the text.

    Raises:
        InvalidGrammar: not a schema of its dialect, or a reference that leads nowhere.
        GrammarTooLarge: more schemas, or longer names of many, than `Extent` admits.
        UnsupportedGrammar: draft-03, a reference out of the document, or one that may mean several schemas.
    """
    survey = Survey(document)
    survey.resolve()
    _refuse_contains(survey)
    warnings = first(remarks(survey, formats))
    places: dict[str, str] = {}
    if survey.outside or any(_differs(survey, pointer, formats) for pointer in survey.schemas):
        document = Writer(survey, places, formats).document()
        schemas = dict(walk(document))
    else:
        schemas = survey.schemas
    return Translation(document, schemas, Places(places), warnings, survey.names.foreign)


def _refuse_contains(survey: Survey) -> None:
    """In 2019-09 `contains` evaluates no items, since then those that match it: 2020-12 has no words for what `unevaluatedItems` meant."""
    found = None
    unevaluated = False
    for pointer, schema in survey.schemas.items():
        if isinstance(schema, dict) and survey.stands[pointer].scope.dialect is DRAFT_2019_09:
            unevaluated |= "unevaluatedItems" in schema
            found = pointer if found is None and "contains" in schema else found
    if unevaluated and found is not None:
        raise UnsupportedGrammar("`contains` in a schema of 2019-09 with `unevaluatedItems` is not supported", join(found, "contains"))


def _differs(survey: Survey, pointer: str, formats: bool) -> bool:
    """Whether a schema has anything that 2020-12 would not say in the same words, or that the survey has resolved."""
    schema, dialect = survey.schemas[pointer], survey.stands[pointer].scope.dialect
    if not isinstance(schema, dict):
        return False
    for keyword, value in schema.items():
        if keyword in NAMES or not dialect.keeps(keyword, schema) or is_silent_format(keyword, value, formats):
            return True
        if keyword in _FORMS and _is_other_form(survey, join(pointer, keyword), keyword, value):
            return True
    return False


def _is_other_form(survey: Survey, where: str, keyword: str, value: Json) -> bool:
    if keyword == "$ref":
        return survey.reference(where, value) != value
    if keyword == "items":
        return isinstance(value, list)
    return isinstance(value, bool) if keyword in BOUNDS else True
