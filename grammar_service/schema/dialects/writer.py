"""A surveyed document in the words of draft 2020-12."""

from __future__ import annotations

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.dialects.parts import Part, parts_of
from grammar_service.schema.dialects.survey import REFERENCES, Survey
from grammar_service.schema.formats.known import FORMATS
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import MAP_OF_SUBSCHEMAS, Schema
from grammar_service.schema.pointer import join

NAMES = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"})
"""Keywords that name schemas, or say what names mean."""
BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
"""Keywords that are flags in draft-04, with the bounds that they are about."""
_BOUNDED = {bound: flag for flag, bound in BOUNDS.items()}
_SILENT = NAMES | {"$schema", "nullable"}
"""Keywords that the translation does without."""


class Writer:
    """Writes the translation, subschemas first. `moved` gets the pointers of what is given another place, with the user's own. Without
    `formats`, `format` is left out."""

    def __init__(self, survey: Survey, moved: dict[str, str], formats: bool) -> None:
        self._survey = survey
        self._moved = moved
        self._formats = formats
        self._translated: dict[str, Json] = {}

    def document(self) -> Json:
        for pointer in reversed(self._survey.schemas):
            self._translated[pointer] = self._schema(pointer)
        root = self._translated[""]
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
            outside[ours.rpartition("/")[2]] = self._translated[pointer]
        return outside

    def _schema(self, pointer: str) -> Json:
        schema, dialect = self._survey.schemas[pointer], self._survey.stands[pointer].scope.dialect
        if not isinstance(schema, dict):
            return schema
        translated: Schema = {}
        for keyword in schema:
            if dialect.keeps(keyword, schema) and not is_silent_format(keyword, schema[keyword], self._formats):
                self._write(keyword, pointer, schema, translated)
        if dialect.reads("nullable", schema) and schema.get("nullable") is True and "type" in schema:
            translated["type"] = _with_null(schema["type"])
        self._add_references(pointer, schema, translated)
        return translated

    def _write(self, keyword: str, pointer: str, schema: Schema, translated: Schema) -> None:
        value = schema[keyword]
        if keyword in self._survey.stands[pointer].scope.dialect.applicators:
            self._write_parts(keyword, pointer, schema, translated)
        elif keyword in REFERENCES:
            # In its place, since the order of keywords is the order of properties; a second one follows at the end.
            translated.setdefault("$ref", self._survey.reference(join(pointer, keyword), value))
        elif keyword == "dependentRequired" and isinstance(value, dict):
            for name, names in value.items():
                _require(translated, name, names)
        elif keyword in BOUNDS and isinstance(value, bool):
            bound = BOUNDS[keyword]
            if value and bound in schema:
                translated[keyword] = schema[bound]
        elif not (keyword in _SILENT or (keyword in _BOUNDED and schema.get(_BOUNDED[keyword]) is True)):
            translated[keyword] = value

    def _write_parts(self, keyword: str, pointer: str, schema: Schema, translated: Schema) -> None:
        """A keyword with its subschemas, under the keyword that 2020-12 has for it."""
        value, ours = schema[keyword], self._survey.stands[pointer].ours
        if keyword in MAP_OF_SUBSCHEMAS:
            translated.setdefault(keyword, {})
        for part in parts_of(keyword, schema):
            steps = () if part.step is None else (part.step,)
            self._move(pointer, part.keyword, part.ours, steps, schema)
            child = self._child(join(pointer, part.keyword, *steps), join(ours, part.ours, *steps))
            _put(translated, part, child, join(pointer, part.keyword, *steps))
        if keyword == "dependencies" and isinstance(value, dict):
            for name, names in value.items():
                if isinstance(names, list):
                    self._move(pointer, keyword, "dependentRequired", (name,), schema)
                    _require(translated, name, names)

    def _child(self, theirs: str, ours: str) -> Json:
        """The translation of a subschema; a reference to it, where it was met elsewhere first."""
        return self._translated[theirs] if self._survey.stands[theirs].ours == ours else {"$ref": self._survey.reference_to(theirs)}

    def _add_references(self, pointer: str, schema: Schema, translated: Schema) -> None:
        """Note where the reference has come from; others than the first, since 2020-12 allows one `$ref` in a schema, as branches."""
        ours = self._survey.stands[pointer].ours
        places = [join(pointer, keyword) for keyword in schema if keyword in REFERENCES]
        read = [where for where in places if where in self._survey.targets]
        for index, where in enumerate(read):
            place = join(ours, "$ref")
            if index > 0:
                listed = translated.get("allOf")
                branches = listed if isinstance(listed, list) else []
                reference = self._survey.reference_to(self._survey.targets[where])
                translated["allOf"], place = [*branches, {"$ref": reference}], join(ours, "allOf", len(branches))
            if place != where:
                self._moved[place] = where

    def _move(self, pointer: str, keyword: str, ours: str, steps: tuple[str | int, ...], schema: Schema) -> None:
        """Note a renamed keyword; where the user has both, what stands under it."""
        if keyword == ours:
            return
        stays = ours in schema and ours not in ("items", "prefixItems")
        below = steps if stays else ()
        self._moved[join(self._survey.stands[pointer].ours, ours, *below)] = join(pointer, keyword, *below)


def is_silent_format(keyword: str, value: Json, formats: bool) -> bool:
    """Whether this is a `format` that asserts nothing: unknown ones are annotations (Validation, 7.2.3)."""
    return keyword == "format" and not (formats and value in FORMATS)


def _put(translated: Schema, part: Part, child: Json, where: str) -> None:
    if part.step is None:
        translated[part.ours] = child
    elif isinstance(part.step, int):
        listed = translated.setdefault(part.ours, [])
        assert isinstance(listed, list), "`check_shape` has seen to it"
        listed.append(child)
    else:
        members = translated.setdefault(part.ours, {})
        assert isinstance(members, dict), "`check_shape` has seen to it"
        if part.step in members:
            raise UnsupportedGrammar("`dependencies` and `dependentSchemas` about one property are not supported", where)
        members[part.step] = child


def _require(translated: Schema, name: str, names: Json) -> None:
    required = translated.setdefault("dependentRequired", {})
    assert isinstance(required, dict), "`check_shape` has seen to it"
    listed = [*_names(required.get(name)), *_names(names)]
    required[name] = list(dict.fromkeys(listed))


def _names(value: Json) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def _with_null(types: Json) -> Json:
    listed = types if isinstance(types, list) else [types]
    return [*listed, *([] if "null" in listed else ["null"])]
