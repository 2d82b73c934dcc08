"""An instance with its members in the order in which its schema names them, which is the order that a grammar writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, dict_at
from grammar_service.schema.pointer import of_fragment, resolve
from grammar_service.schema.reading.reader import CONDITIONS

Holds = Callable[[Json, Json], bool]
"""Whether a subschema allows a value."""
Said = tuple[str, Schema]
"""A keyword, and the schema that it stands in."""
_CHOICES = ("anyOf", "oneOf")
_ALONE = ("if", "then", "else", "not")
_FIRST = ("properties", "required")
_MEMBERS = ("properties", "patternProperties", "additionalProperties")
_TOGETHER = {**dict.fromkeys(_MEMBERS, _MEMBERS), **dict.fromkeys(_ALONE[:3], _ALONE[:3])}


class MemberOrder:
    """Orders by one schema: what `properties` declare, and behind it what is only required. `by_keywords`: `properties` count where they
    first declare a name, those of conditions last, as this service orders members; else a schema's own come before all else, as the
    libraries order them. Of alternatives those count that hold."""

    def __init__(self, document: Json, holds: Holds, by_keywords: bool) -> None:
        self._document = document
        self._holds = holds
        self._by_keywords = by_keywords

    def ordered(self, value: Json) -> Json:
        return self._ordered(value, [self._document])

    def _ordered(self, value: Json, schemas: list[Json]) -> Json:
        if not isinstance(value, (dict, list)):
            return value
        said = list(self._said(value, schemas))
        parts = list({id(schema): schema for _, schema in said}.values())
        if isinstance(value, list):
            return [self._ordered(item, list(_of_item(parts, index))) for index, item in enumerate(value)]
        named = [
            name for first in _FIRST for keyword, schema in said if keyword == first for name in _listed(schema[keyword]) if name in value
        ]
        return {name: self._ordered(value[name], list(_of_member(parts, name))) for name in dict.fromkeys([*named, *value])}

    def _said(self, value: Json, schemas: list[Json]) -> Iterator[Said]:
        """The keywords about the value, those of applied schemas in place; one that is met again adds nothing."""
        seen: set[int] = set()
        waiting: list[tuple[str, Json]] = [("", schema) for schema in reversed(schemas)]
        while waiting:
            keyword, schema = waiting.pop()
            if not isinstance(schema, dict):
                continue
            if keyword:
                yield keyword, schema
            elif id(schema) not in seen:
                seen.add(id(schema))
                waiting += reversed([step for keyword in self._keywords(schema) for step in self._steps(keyword, schema, value)])

    def _keywords(self, schema: Schema) -> list[str]:
        if not self._by_keywords:
            return sorted(schema, key=lambda keyword: keyword not in _FIRST)
        # What is read together is said where the first of it stands.
        order = list(dict.fromkeys(word for keyword in schema for word in _TOGETHER.get(keyword, (keyword,))))
        return sorted((keyword for keyword in order if keyword in schema), key=CONDITIONS.__contains__)

    def _steps(self, keyword: str, schema: Schema, value: Json) -> list[tuple[str, Json]]:
        said = schema[keyword]
        if keyword == "$ref" and isinstance(said, str):
            return [("", self._target(said))]
        if keyword == "allOf" and isinstance(said, list):
            return [("", branch) for branch in said]
        if keyword in _CHOICES and isinstance(said, list):
            return [("", branch) for branch in said if self._holds(branch, value)]
        if keyword in _ALONE:
            return [("", said)] if self._by_keywords or keyword in ("then", "else") else []
        return [(keyword, schema)]

    def _target(self, reference: str) -> Json:
        try:
            return resolve(self._document, of_fragment(reference.removeprefix("#")))
        except (LookupError, UnicodeDecodeError):
            return None


def _listed(names: Json) -> list[str]:
    return [name for name in names if isinstance(name, str)] if isinstance(names, (list, dict)) else []


def _of_member(parts: list[Schema], name: str) -> Iterator[Json]:
    for schema in parts:
        named = dict_at(schema, "properties")
        found = [named[name]] if name in named else []
        found += [asked for pattern, asked in dict_at(schema, "patternProperties").items() if _matches(pattern, name)]
        yield from found or [schema.get("additionalProperties")]


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _of_item(parts: list[Schema], index: int) -> Iterator[Json]:
    for schema in parts:
        items = schema.get("items")
        first = items if isinstance(items, list) else schema.get("prefixItems")
        if isinstance(first, list) and index < len(first):
            yield first[index]
        else:
            yield schema.get("additionalItems") if isinstance(items, list) else items
