"""Schemas that are named by `$id`, `$anchor` or `$dynamicAnchor`: every reference becomes a JSON pointer, and the names go."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote, urldefrag, urljoin

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema, mapped_at, subschemas
from grammar_service.schema.pointer import join

_NAMES = frozenset({"$id", "$anchor", "$dynamicAnchor"})
_NAMING = _NAMES | {"$dynamicRef"}
_SAFE = "/~!$&'()*+,;=:@?"


def with_pointers(document: Json, schemas: Mapping[str, Json]) -> Json:
    """An equal schema in which references are by JSON pointer from the document's root; the same object where they are already.
    `schemas` are those of the document by pointer.

    A `$dynamicRef` becomes a `$ref` where only one schema can be meant: that of the whole document's resource, which is the outermost
    of every dynamic scope, or the only one of its name.

    Raises:
        UnsupportedGrammar: a reference out of the document, to an unknown anchor, or by a `$dynamicRef` that may mean several schemas.
        InvalidGrammar: a fragment that is not text.
    """
    if not any(map(_is_named, schemas.values())):
        return document
    names = _Names(document)
    if not names.needed:
        return document
    return names.replaced(document, "")


def _is_named(schema: Json) -> bool:
    return isinstance(schema, dict) and (not _NAMING.isdisjoint(schema) or not str(schema.get("$ref", "#")).startswith("#"))


class _Names:
    """What a document calls its schemas. `_places`: the base URI and the pointer of the resource that each schema belongs to."""

    def __init__(self, document: Json) -> None:
        self._places: dict[str, tuple[str, str]] = {}
        self._resources: dict[str, str] = {}
        self._anchors: dict[tuple[str, str], str] = {}
        self._dynamic: dict[tuple[str, str], str] = {}
        self.needed = False
        waiting: list[tuple[str, Json, tuple[str, str]]] = [("", document, ("", ""))]
        while waiting:
            pointer, schema, place = waiting.pop()
            if isinstance(schema, dict):
                place = self._placed(pointer, schema, place)
                waiting.extend((inner, part, place) for inner, part in subschemas(pointer, schema))
            self._places[pointer] = place

    def _placed(self, pointer: str, schema: Schema, place: tuple[str, str]) -> tuple[str, str]:
        if isinstance(identifier := schema.get("$id"), str):
            uri, fragment = urldefrag(identifier)
            base = _joined(place[0], uri)
            if fragment or base in self._resources:
                raise UnsupportedGrammar("`$id` must name one resource, without a fragment", join(pointer, "$id"))
            place = (base, pointer)
            self._resources[base] = pointer
        for keyword, table in (("$anchor", (self._anchors,)), ("$dynamicAnchor", (self._anchors, self._dynamic))):
            if isinstance(name := schema.get(keyword), str):
                for names in table:
                    names[place[1], name] = pointer
        named = {"$anchor", "$dynamicAnchor", "$dynamicRef"} & schema.keys() or ("$id" in schema and pointer)
        self.needed |= bool(named) or not str(schema.get("$ref", "#")).startswith("#")
        return place

    def replaced(self, schema: Json, pointer: str) -> Json:
        """A copy without names; recursion is bounded by the nesting that `parse_json` admits."""
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema and "$dynamicRef" in schema:
            raise UnsupportedGrammar("`$dynamicRef` beside `$ref` is not supported", join(pointer, "$dynamicRef"))
        copy: Schema = {}
        for keyword, value in schema.items():
            if keyword in ("$ref", "$dynamicRef"):
                copy["$ref"] = "#" + quote(self._target(str(value), keyword, pointer), safe=_SAFE)
            elif keyword not in _NAMES:
                copy[keyword] = value
        return mapped_at(pointer, copy, self.replaced)

    def _target(self, reference: str, keyword: str, pointer: str) -> str:
        where = join(pointer, keyword)
        base, resource = self._places[pointer]
        uri, encoded = urldefrag(reference)
        if uri:
            found = self._resources.get(_joined(base, uri))
            if found is None:
                raise UnsupportedGrammar("a reference must stay inside the schema: nothing is fetched", where)
            resource = found
        try:
            fragment = unquote(encoded, errors="strict")
        except UnicodeDecodeError:
            raise InvalidGrammar(f"`{keyword}` is not a valid URI fragment", where) from None
        if not fragment or fragment.startswith("/"):
            return resource + fragment
        if keyword == "$dynamicRef" and (resource, fragment) in self._dynamic:
            return self._dynamic_target(fragment, where)
        if (resource, fragment) not in self._anchors:
            raise UnsupportedGrammar(f"there is no anchor {fragment[:80]!r}", where)
        return self._anchors[resource, fragment]

    def _dynamic_target(self, name: str, where: str) -> str:
        if ("", name) in self._dynamic:
            return self._dynamic["", name]
        meant = [pointer for (_, known), pointer in self._dynamic.items() if known == name]
        if len(meant) > 1:
            raise UnsupportedGrammar("`$dynamicRef` may mean several schemas here, which is not supported", where)
        return meant[0]


def _joined(base: str, uri: str) -> str:
    return urljoin(base, uri) if base else uri
