"""A document of any dialect as one of draft 2020-12: without names, unknown keywords and older forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.dialects.dialect import DRAFT_2019_09
from grammar_service.schema.dialects.parts import Part, parts_of
from grammar_service.schema.dialects.places import Places
from grammar_service.schema.dialects.remarks import remarks
from grammar_service.schema.dialects.survey import REFERENCES, Survey
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import LIST_OF_SUBSCHEMAS, MAP_OF_SUBSCHEMAS, ONE_SUBSCHEMA, Schema, is_annotation, walk
from grammar_service.schema.pointer import join
from grammar_service.warning import ConstraintWarning, first

_NAMES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"})
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_BOUNDED = {bound: flag for flag, bound in _BOUNDS.items()}
_FORMS = frozenset({*REFERENCES, *_BOUNDS, "items", "additionalItems", "dependencies", "nullable"})
"""Keywords that may be written otherwise in 2020-12."""
_SILENT = _NAMES | {*REFERENCES, "$schema", "nullable"}
"""Keywords that the translation has resolved."""
_SUBSCHEMAS = ONE_SUBSCHEMA | LIST_OF_SUBSCHEMAS | MAP_OF_SUBSCHEMAS | {"additionalItems", "dependencies"}


@dataclass(frozen=True)
class Translation:
    """`schemas` are those of `document` by pointer; `places` know where they stand in the user's own text, as do the `warnings`.
    `foreign` is the user's pointer of a `$schema` that names no dialect that is known."""

    document: Json
    schemas: Mapping[str, Json]
    places: Places
    warnings: tuple[ConstraintWarning, ...]
    foreign: str | None


def translated(document: Json) -> Translation:
    """Read a schema of any dialect. The same object is its translation where there is nothing to translate. Time linear in the text.

    Raises:
        InvalidGrammar: not a schema of its dialect, or a reference that leads nowhere.
        GrammarTooLarge: more schemas, or longer names of many, than `Extent` admits.
        UnsupportedGrammar: draft-03, a reference out of the document, or one that may mean several schemas.
    """
    survey = Survey(document)
    survey.resolve()
    _refuse_contains(survey)
    warnings = first(remarks(survey))
    places: dict[str, str] = {}
    if survey.outside or any(_differs(survey, pointer) for pointer in survey.schemas):
        document = _Writer(survey, places).document()
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


def _differs(survey: Survey, pointer: str) -> bool:
    """Whether a schema has anything that 2020-12 would not say in the same words, or that the survey has resolved."""
    schema, dialect = survey.schemas[pointer], survey.stands[pointer].scope.dialect
    if not isinstance(schema, dict):
        return False
    for keyword, value in schema.items():
        if keyword in _NAMES or not (dialect.reads(keyword, schema) or is_annotation(keyword)):
            return True
        if keyword in _FORMS and _is_other_form(survey, join(pointer, keyword), keyword, value):
            return True
    return False


def _is_other_form(survey: Survey, where: str, keyword: str, value: Json) -> bool:
    if keyword == "$ref":
        return survey.reference(where, value) != value
    if keyword == "items":
        return isinstance(value, list)
    return isinstance(value, bool) if keyword in _BOUNDS else True


class _Writer:
    """Writes the translation, subschemas first. `moved` gets the pointers of what is given another place, with the user's own."""

    def __init__(self, survey: Survey, moved: dict[str, str]) -> None:
        self._survey = survey
        self._moved = moved
        self._written: dict[str, Json] = {}

    def document(self) -> Json:
        for pointer in reversed(self._survey.schemas):
            self._written[pointer] = self._schema(pointer)
        root = self._written[""]
        if not isinstance(root, dict) or not self._survey.outside:
            return root
        defined = root.get("$defs")
        return {**root, "$defs": {**(defined if isinstance(defined, dict) else {}), **self._outside()}}

    def _outside(self) -> dict[str, Json]:
        """The schemas that only references know, by the names that they have been given."""
        outside = {}
        for pointer in self._survey.outside:
            ours = self._survey.stands[pointer].ours
            self._moved[ours] = pointer
            outside[ours.rpartition("/")[2]] = self._written[pointer]
        return outside

    def _schema(self, pointer: str) -> Json:
        schema, dialect = self._survey.schemas[pointer], self._survey.stands[pointer].scope.dialect
        if not isinstance(schema, dict):
            return schema
        written: Schema = {}
        for keyword in schema:
            if dialect.reads(keyword, schema) or is_annotation(keyword):
                self._write(keyword, pointer, schema, written)
        if dialect.reads("nullable", schema) and schema.get("nullable") is True and "type" in schema:
            written["type"] = _with_null(schema["type"])
        self._add_references(pointer, schema, written)
        return written

    def _write(self, keyword: str, pointer: str, schema: Schema, written: Schema) -> None:
        value = schema[keyword]
        if keyword in _SUBSCHEMAS:
            self._write_parts(keyword, pointer, schema, written)
        elif keyword == "dependentRequired" and isinstance(value, dict):
            for name, names in value.items():
                _require(written, name, names)
        elif keyword in _BOUNDS and isinstance(value, bool):
            bound = _BOUNDS[keyword]
            if value and bound in schema:
                written[keyword] = schema[bound]
        elif not (keyword in _SILENT or (keyword in _BOUNDED and schema.get(_BOUNDED[keyword]) is True)):
            written[keyword] = value

    def _write_parts(self, keyword: str, pointer: str, schema: Schema, written: Schema) -> None:
        """A keyword with its subschemas, under the keyword that 2020-12 has for it."""
        value, ours = schema[keyword], self._survey.stands[pointer].ours
        if keyword in MAP_OF_SUBSCHEMAS:
            written.setdefault(keyword, {})
        for part in parts_of(keyword, schema):
            steps = () if part.step is None else (part.step,)
            self._move(pointer, part.keyword, part.ours, steps, schema)
            child = self._child(join(pointer, part.keyword, *steps), join(ours, part.ours, *steps))
            _put(written, part, child, join(pointer, part.keyword, *steps))
        if keyword == "dependencies" and isinstance(value, dict):
            for name, names in value.items():
                if isinstance(names, list):
                    self._move(pointer, keyword, "dependentRequired", (name,), schema)
                    _require(written, name, names)

    def _child(self, theirs: str, ours: str) -> Json:
        """What is written of a subschema; a reference to it, where it was met elsewhere first."""
        return self._written[theirs] if self._survey.stands[theirs].ours == ours else {"$ref": self._survey.reference_to(theirs)}

    def _add_references(self, pointer: str, schema: Schema, written: Schema) -> None:
        """All kinds of references as `$ref`, which 2020-12 allows once in a schema."""
        ours = self._survey.stands[pointer].ours
        for keyword in REFERENCES:
            where = join(pointer, keyword)
            if where not in self._survey.targets:
                continue
            reference = self._survey.reference(where, schema[keyword])
            if "$ref" not in written:
                written["$ref"], place = reference, join(ours, "$ref")
            else:
                listed = written.get("allOf")
                branches = listed if isinstance(listed, list) else []
                written["allOf"], place = [*branches, {"$ref": reference}], join(ours, "allOf", len(branches))
            if place != where:
                self._moved[place] = where

    def _move(self, pointer: str, keyword: str, ours: str, steps: tuple[str | int, ...], schema: Schema) -> None:
        """Note a renamed keyword; where the user has both, what stands under it."""
        if keyword == ours:
            return
        stays = ours in schema and ours not in ("items", "prefixItems")
        below = steps if stays else ()
        self._moved[join(self._survey.stands[pointer].ours, ours, *below)] = join(pointer, keyword, *below)


def _put(written: Schema, part: Part, child: Json, where: str) -> None:
    if part.step is None:
        written[part.ours] = child
    elif isinstance(part.step, int):
        listed = written.setdefault(part.ours, [])
        assert isinstance(listed, list), "`check_shape` has seen to it"
        listed.append(child)
    else:
        members = written.setdefault(part.ours, {})
        assert isinstance(members, dict), "`check_shape` has seen to it"
        if part.step in members:
            raise UnsupportedGrammar("`dependencies` and `dependentSchemas` about one property are not supported", where)
        members[part.step] = child


def _require(written: Schema, name: str, names: Json) -> None:
    required = written.setdefault("dependentRequired", {})
    assert isinstance(required, dict), "`check_shape` has seen to it"
    listed = [*_names(required.get(name)), *_names(names)]
    required[name] = list(dict.fromkeys(listed))


def _names(value: Json) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def _with_null(types: Json) -> Json:
    listed = types if isinstance(types, list) else [types]
    return [*listed, *([] if "null" in listed else ["null"])]
