"""What the schemas of a document are called: by `$id`, `id`, anchors; and the base that references are relative to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urldefrag, urljoin

from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.dialects.dialect import UNNAMED, Dialect, dialect_named
from grammar_service.schema.dialects.extent import Extent
from grammar_service.schema.keywords import Schema
from grammar_service.schema.pointer import join

RECURSIVE = ""
"""The name under which `$recursiveAnchor` is a dynamic anchor of its resource; no anchor can have it."""
_NAMING = frozenset({"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds at a schema: its dialect, its base URI, the pointer of the resource that it belongs to, and the pointer of the schema
    that has given the base its name, which 2020-12 takes for a resource only where it has an `$id`."""

    dialect: Dialect
    base: str = ""
    resource: str = ""
    base_resource: str = ""


class Names:
    """Names with the pointers of what they name, None where several schemas have one name. Anchors go by resource.

    `foreign` is the pointer of the first `$schema` that names no dialect that is known.
    """

    def __init__(self, extent: Extent) -> None:
        self._extent = extent
        self.foreign: str | None = None
        self._resources: dict[str, str | None] = {}
        self._anchors: dict[tuple[str, str], str | None] = {}
        self._dynamic: dict[str, dict[str, str]] = {}

    def enter(self, pointer: str, schema: Schema, scope: Scope, known_by_name: bool) -> Scope:
        """The scope inside of a schema, whose names are learnt if it can be `known_by_name`. Raises UnsupportedGrammar: its dialect."""
        if _NAMING.isdisjoint(schema):
            return scope
        if "$schema" in schema:
            scope = self._dialect(pointer, schema, scope)
        identifier = schema.get("$id", schema.get("id")) if scope.dialect.reads("$id" if "$id" in schema else "id", schema) else None
        if isinstance(identifier, str):
            scope = self._identified(pointer, identifier, scope, "$id" in schema or scope.dialect.is_certain, known_by_name)
        if known_by_name:
            self._learn_anchors(pointer, schema, scope)
        return scope

    def resource(self, uri: str, scope: Scope, where: str) -> str:
        """The pointer of the resource that a URI reference names. Raises UnsupportedGrammar: none, or several."""
        whole = self._joined(scope.base, uri)
        if whole not in self._resources:
            raise UnsupportedGrammar("a reference must stay inside the schema: nothing is fetched", where)
        found = self._resources[whole]
        if found is None:
            raise UnsupportedGrammar("several schemas have this name", where)
        return found

    def anchor(self, resource: str, name: str, where: str) -> str:
        """The pointer of an anchor. Raises UnsupportedGrammar: there is none, or there are several."""
        found = self._anchors.get((resource, name))
        if found is None:
            how_many = "several anchors are called" if (resource, name) in self._anchors else "there is no anchor"
            raise UnsupportedGrammar(f"{how_many} {name[:80]!r}", where)
        return found

    def dynamic(self, resource: str, name: str, where: str) -> str | None:
        """What a dynamic reference means that leads to `name` in a resource, None where that is no dynamic anchor: the schema of this
        name in the outermost resource, which is the outermost of every dynamic scope, or the only one of this name.

        Raises UnsupportedGrammar: it may be one of several.
        """
        meant = self._dynamic.get(name, {})
        if resource not in meant:
            return None
        if "" in meant:
            return meant[""]
        if len(meant) > 1:
            raise UnsupportedGrammar("this reference may mean several schemas here, which is not supported", where)
        return meant[resource]

    def _dialect(self, pointer: str, schema: Schema, scope: Scope) -> Scope:
        try:
            dialect = dialect_named(str(schema["$schema"]))
        except UnsupportedGrammar as error:
            raise UnsupportedGrammar(error.message, join(pointer, "$schema")) from None
        if dialect is None and self.foreign is None:
            self.foreign = join(pointer, "$schema")
        return replace(scope, dialect=dialect or UNNAMED)

    def _identified(self, pointer: str, identifier: str, scope: Scope, is_resource: bool, known_by_name: bool) -> Scope:
        """An `id` without a `$schema` is a name, but no boundary: 2020-12, which knows no `id`, has `#` mean the document."""
        uri, fragment = urldefrag(identifier)
        if uri:
            base = self._joined(scope.base, uri)
            scope = Scope(scope.dialect, base, pointer if is_resource else scope.resource, pointer)
            if known_by_name:
                self._resources[base] = pointer if self._resources.get(base, pointer) == pointer else None
        if fragment and not fragment.startswith("/") and known_by_name:
            self._name(scope.resource, fragment, pointer)
        return scope

    def _learn_anchors(self, pointer: str, schema: Schema, scope: Scope) -> None:
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := schema.get(keyword), str) and scope.dialect.reads(keyword, schema):
                self._name(scope.resource, name, pointer)
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(name, {})[scope.resource] = pointer
        if schema.get("$recursiveAnchor") is True and pointer == scope.resource and scope.dialect.reads("$recursiveAnchor", schema):
            self._dynamic.setdefault(RECURSIVE, {})[scope.resource] = pointer

    def _name(self, resource: str, name: str, pointer: str) -> None:
        self._anchors[resource, name] = pointer if self._anchors.get((resource, name), pointer) == pointer else None

    def _joined(self, base: str, uri: str) -> str:
        self._extent.text(base, uri)
        return urljoin(base, uri) if base else uri
