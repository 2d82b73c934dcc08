"""The one form of a schema that backends are handed: no annotations, explicit types, explicit closure.

Each step only narrows: what the normal form allows, the user's schema allows. The last three are for closed schemas only; without
them the normal form allows what JSON Schema does. They are left out, too, where a schema is
read for what it does not allow (`not`, `if`, a `oneOf` that stays one, …): there it would widen the whole.

* `oneOf` whose branches cannot overlap becomes `anyOf`.
* `enum` and `const` lose the values that `type` excludes, and `type` goes.
* A schema that names no type but constrains values of exactly one type is read as of that type.
* Multiples without a lower bound are not negative: no backend writes the others in all cases.
* An object with `properties` or `patternProperties` and without `additionalProperties` is closed, an array with `prefixItems` and
  without `items` too: a model shall not invent. JSON Schema would leave them open, and so do we where schemas are composed
  (`allOf`, `dependentSchemas`, or `$ref`, `anyOf`, `oneOf` beside other keywords), since closing the parts would empty the whole.
"""

from __future__ import annotations

from grammar_service.errors import InvalidGrammar
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import BY_TYPE, IN_PLACE, Schema, dict_at, is_annotation, list_at, mapped_at
from grammar_service.schema.normal_form.disjoint import are_disjoint, type_of, values_of
from grammar_service.schema.normal_form.negation import negates
from grammar_service.schema.pointer import join
from grammar_service.schema.references import References, asserting

_OTHER_NEGATION = frozenset({"not", "if", "contains", "unevaluatedItems", "unevaluatedProperties"})


class Normaliser:
    """Writes one document in normal form; recursion is bounded by the nesting that `parse_json` admits."""

    def __init__(self, references: References, closed: bool = True) -> None:
        schemas = references.schemas.values()
        self._references = references
        self._rename = not any("/oneOf/" in target for target in references.targets)
        told = [schema for schema in schemas if not self._is_disjoint(schema)]
        self._narrows = closed and not negates(told)
        self._closes = self._narrows and not any(composes(schema) for schema in schemas)

    @property
    def closes(self) -> bool:
        """Whether objects that say nothing of additional properties get none."""
        return self._closes

    def normal(self, schema: Json, pointer: str = "") -> Json:
        """Raises InvalidGrammar with the pointer of a schema that nothing can match."""
        if not isinstance(schema, dict):
            return schema
        normal = {name: value for name, value in schema.items() if not is_annotation(name) and name != "$id"}
        if normal.get("enum") == []:
            # Nothing is among no values; what others refer to stays.
            normal = {"not": {}, **{name: normal[name] for name in ("$defs", "definitions") if name in normal}}
        self._choose_branches(normal)
        _unlist_type(normal)
        if self._narrows:
            _read_type(normal)
            _bound_multiples(normal)
        _drop_other_types(normal)
        if not _has_other_values(normal):
            _filter_values(normal)
        elif self._narrows:
            _refuse_values(normal, pointer)
        _simplify(normal)
        if self._closes:
            _close(normal)
        _drop_idle_bound(normal)
        return mapped_at(pointer, normal, self.normal)

    def _choose_branches(self, schema: Schema) -> None:
        if self._is_disjoint(schema):
            schema["anyOf"] = schema.pop("oneOf")

    def _is_disjoint(self, schema: Json) -> bool:
        """Whether it has a `oneOf` that is as good as an `anyOf`."""
        branches = schema.get("oneOf") if isinstance(schema, dict) else None
        plain = isinstance(schema, dict) and "anyOf" not in schema and not _OTHER_NEGATION & schema.keys()
        return self._rename and plain and isinstance(branches, list) and are_disjoint(branches, self._references)


def composes(schema: Json) -> bool:
    """Whether several schemas are about the same value."""
    if not isinstance(schema, dict):
        return False
    said = {name for name in schema if not is_annotation(name)} - {"$id", "$defs", "definitions", "discriminator"}
    return "dependentSchemas" in said or len(list_at(schema, "allOf")) > 1 or (bool(said & IN_PLACE) and len(said) > 1)


def _unlist_type(schema: Schema) -> None:
    named = schema.get("type")
    if isinstance(named, list) and len(named) == 1:
        schema["type"] = named[0]


def _read_type(schema: Schema) -> None:
    if "type" not in schema and "enum" not in schema and "const" not in schema:
        said = [kind for kind, keywords in BY_TYPE.items() if keywords & schema.keys()]
        if len(said) == 1 and not asserting(schema) & (IN_PLACE | {"not", "if"}):
            schema["type"] = said[0]


def _drop_other_types(schema: Schema) -> None:
    types = types_of(schema)
    for kind, keywords in BY_TYPE.items():
        if types and kind not in types and not (kind == "number" and "integer" in types):
            for keyword in keywords & schema.keys():
                del schema[keyword]


def types_of(schema: Schema) -> list[str]:
    """The types that a schema names, [] where it names none."""
    named = schema.get("type")
    return [str(name) for name in named] if isinstance(named, list) else [named] if isinstance(named, str) else []


def _has_other_values(schema: Schema) -> bool:
    """Whether `const` or `enum` have only values that `type` excludes."""
    types, values = types_of(schema), values_of(schema)
    return bool(types) and values is not None and not any(_is_of(value, types) for value in values)


def _refuse_values(schema: Schema, pointer: str) -> None:
    keyword = "const" if "const" in schema else "enum"
    what = "`const` is not" if keyword == "const" else "no value of `enum` is"
    raise InvalidGrammar(f"{what} of the schema's `type`: nothing matches", join(pointer, keyword))


def _filter_values(schema: Schema) -> None:
    types, values = types_of(schema), schema.get("enum")
    if types and isinstance(values, list):
        schema["enum"] = [value for value in values if _is_of(value, types)]
    if types and ("const" in schema or "enum" in schema):
        del schema["type"]


def _is_of(value: Json, types: list[str]) -> bool:
    kind = type_of(value)
    whole = kind == "number" and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    return kind in types or (whole and "integer" in types)


def _simplify(schema: Schema) -> None:
    """Drop what is always true."""
    for keyword in ("minLength", "minItems", "minProperties"):
        if schema.get(keyword) == 0:
            del schema[keyword]
    required, fewest = schema.get("required"), schema.get("minProperties")
    if isinstance(required, list) and isinstance(fewest, (int, float)) and fewest <= len(required):
        del schema["minProperties"]
    if required == []:
        del schema["required"]
    if schema.get("uniqueItems") is False:
        del schema["uniqueItems"]
    for keyword in ("minLength", "maxLength", "minItems", "maxItems", "maxProperties"):
        if isinstance(count := schema.get(keyword), float):
            schema[keyword] = int(count)


def _bound_multiples(schema: Schema) -> None:
    if "multipleOf" in schema and not {"minimum", "exclusiveMinimum"} & schema.keys() and types_of(schema) in (["number"], ["integer"]):
        schema["minimum"] = 0


def _drop_idle_bound(schema: Schema) -> None:
    """`maxProperties` where there are no more names."""
    most = schema.get("maxProperties")
    is_listed = "properties" in schema and schema.get("additionalProperties") is False and not schema.get("patternProperties")
    if is_listed and isinstance(most, int) and most >= len(dict_at(schema, "properties")):
        del schema["maxProperties"]


def _close(schema: Schema) -> None:
    if ("properties" in schema or "patternProperties" in schema) and not {"additionalProperties", "unevaluatedProperties"} & schema.keys():
        schema["additionalProperties"] = False
    prefix, fewest = schema.get("prefixItems"), schema.get("minItems", 0)
    if isinstance(prefix, list) and "items" not in schema and isinstance(fewest, (int, float)) and fewest <= len(prefix):
        schema["items"] = False
