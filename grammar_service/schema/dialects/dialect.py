"""The drafts of JSON Schema, by what each of them has that others have not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import LIST_OF_SUBSCHEMAS, MAP_OF_SUBSCHEMAS, ONE_SUBSCHEMA, is_annotation

DEFINITIONS = frozenset({"$defs", "definitions"})
"""Known in every dialect: they assert nothing, and references lead there."""
OF_DRAFT_03 = frozenset({"divisibleBy", "extends", "disallow"})
_OLD_SUBSCHEMAS = frozenset({"additionalItems", "dependencies"})


@dataclass(frozen=True)
class Dialect:
    """`known`: the keywords that are not annotations. `lone_ref`: what stands beside a `$ref` is not read. `flags_bounds`:
    `exclusiveMinimum` and `exclusiveMaximum` may be booleans; `names_bounds`: they may be numbers. `is_certain`: `$schema` named it."""

    name: str
    known: frozenset[str]
    lone_ref: bool = False
    flags_bounds: bool = False
    names_bounds: bool = True
    is_certain: bool = True

    @cached_property
    def applicators(self) -> frozenset[str]:
        """Keywords that hold subschemas."""
        return self.known & (ONE_SUBSCHEMA | LIST_OF_SUBSCHEMAS | MAP_OF_SUBSCHEMAS | _OLD_SUBSCHEMAS)

    def reads(self, keyword: str, schema: dict[str, Json]) -> bool:
        """Whether a keyword of this schema is read at all."""
        return keyword in self.known and not (self.lone_ref and "$ref" in schema and keyword != "$ref" and keyword not in DEFINITIONS)

    def is_unknown(self, keyword: str) -> bool:
        """Whether a keyword is an annotation that the dialect has no name for (Core, 4.3.1 and 6.5). `id` is none, whatever the draft:
        it says who a schema is."""
        return keyword not in self.known and keyword != "id" and not is_annotation(keyword)


_DRAFT_04 = DEFINITIONS | frozenset(
    (
        "type enum allOf anyOf oneOf not $ref minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern "
        "format items additionalItems minItems maxItems uniqueItems properties patternProperties additionalProperties required "
        "minProperties maxProperties dependencies"
    ).split()
)
_DRAFT_06 = _DRAFT_04 | {"$id", "const", "contains", "propertyNames"}
_DRAFT_07 = _DRAFT_06 | {"if", "then", "else"}
_DRAFT_2019 = _DRAFT_07 | frozenset(
    (
        "$anchor $vocabulary $recursiveRef $recursiveAnchor dependentRequired dependentSchemas minContains maxContains unevaluatedItems "
        "unevaluatedProperties contentSchema"
    ).split()
)
_DRAFT_2020 = (_DRAFT_2019 - {"additionalItems", "$recursiveRef", "$recursiveAnchor"}) | {"prefixItems", "$dynamicRef", "$dynamicAnchor"}

UNNAMED = Dialect("2020-12", _DRAFT_2019 | _DRAFT_2020 | OF_DRAFT_03 | {"id", "nullable"}, flags_bounds=True, is_certain=False)
"""Of schemas that name none: 2020-12, and what only older drafts and OpenAPI 3.0 say, which has no other meaning there."""
DRAFT_2019_09 = Dialect("2019-09", _DRAFT_2019)
_DRAFT_2020_12 = Dialect("2020-12", _DRAFT_2020)
_BY_DRAFT = {
    "04": (oldest := Dialect("draft-04", _DRAFT_04 | {"id"}, lone_ref=True, flags_bounds=True, names_bounds=False)),
    "05": oldest,  # a new text of draft-04
    "06": Dialect("draft-06", _DRAFT_06, lone_ref=True),
    "07": Dialect("draft-07", _DRAFT_07, lone_ref=True),
    "2019-09": DRAFT_2019_09,
    "2020-12": _DRAFT_2020_12,
}
_TOO_OLD = frozenset({"00", "01", "02", "03"})
_URI = re.compile(r"https?://json-schema\.org/draft[-/](\d\d|\d{4}-\d\d)/(?:hyper-)?schema#?")
_OPENAPI_3_1 = "https://spec.openapis.org/oas/3.1/dialect/base"


def dialect_named(uri: str) -> Dialect | None:
    """The dialect that a `$schema` names, None where it is not known. Raises UnsupportedGrammar: it is older than draft-04."""
    match = _URI.fullmatch(uri)
    if match is None:
        return _DRAFT_2020_12 if uri == _OPENAPI_3_1 else None
    if match[1] in _TOO_OLD:
        raise UnsupportedGrammar(f"draft-{match[1]} is not supported; draft-04 and later are")
    return _BY_DRAFT.get(match[1])
