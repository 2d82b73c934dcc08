"""All schemas of a document, as the user wrote it, and where its references lead."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote, urldefrag

from grammar_service.errors import InvalidGrammar
from grammar_service.schema.dialects.dialect import UNNAMED
from grammar_service.schema.dialects.extent import Extent
from grammar_service.schema.dialects.forms import check_shape
from grammar_service.schema.dialects.names import RECURSIVE, Names, Scope
from grammar_service.schema.dialects.parts import parts
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import Schema
from grammar_service.schema.pointer import join

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SAFE = "/~!$&'()*+,;=:@?"


class Stand(NamedTuple):
    """Where a schema stands in the translation, and what holds there."""

    ours: str
    scope: Scope


class Survey:
    """`schemas` by pointer, parents first; `stands` of each; `targets` of references, by the pointer of their keyword; `outside` are
    the schemas below no keyword of the dialect, to which references lead, and `entered` the keywords on the way there.

    Every schema is visited once.

    Raises:
        InvalidGrammar: a keyword's value has a wrong form, or a reference leads nowhere, or is no text of a URI.
        GrammarTooLarge: it has too many schemas, or their pointers are too long (see `Extent`).
        UnsupportedGrammar: it leads out of the document, or to one of several schemas; or a dialect is not supported.
    """

    def __init__(self, document: Json) -> None:
        self._extent = Extent()
        self.names = Names(self._extent)
        self.schemas: dict[str, Json] = {}
        self.stands: dict[str, Stand] = {}
        self.targets: dict[str, str] = {}
        self.outside: list[str] = []
        self.entered: set[str] = set()
        self._document = document
        self._referring: list[str] = []
        self._visit("", document, Stand("", Scope(UNNAMED)))

    def resolve(self) -> None:
        """Follow all references; those of the schemas that are found on the way too."""
        while self._referring:
            pointer = self._referring.pop()
            schema, scope = self.schemas[pointer], self.stands[pointer].scope
            for keyword in REFERENCES:
                if isinstance(schema, dict) and keyword in schema and scope.dialect.reads(keyword, schema):
                    where = join(pointer, keyword)
                    self.targets[where] = self._target(str(schema[keyword]), keyword, scope, where)

    def reference(self, where: str, value: Json) -> Json:
        """What the translation has for a reference of the user's: the same, where it leads to the same place."""
        target = self.targets[where]
        is_same = isinstance(value, str) and value.startswith("#") and unquote(value[1:]) == self.stands[target].ours
        return value if is_same else self.reference_to(target)

    def reference_to(self, target: str) -> str:
        """The `$ref` of the translation that leads to a schema of the user's."""
        return "#" + quote(self.stands[target].ours, safe=_SAFE)

    def _visit(self, pointer: str, schema: Json, stand: Stand, inside: bool = True) -> None:
        """A schema and all below it that are new; names count only `inside`, where the dialect looks for them."""
        waiting = [(pointer, schema, stand)]
        while waiting:
            pointer, schema, stand = waiting.pop()
            if pointer in self.schemas:
                continue
            self.schemas[pointer] = schema
            scope = self.names.enter(pointer, schema, stand.scope, inside) if isinstance(schema, dict) else stand.scope
            self.stands[pointer] = Stand(stand.ours, scope)
            check_shape(pointer, schema, scope.dialect)
            if not isinstance(schema, dict):
                continue
            if not schema.keys().isdisjoint(REFERENCES):
                self._referring.append(pointer)
            waiting.extend(reversed(self._below(pointer, schema, Stand(stand.ours, scope))))

    def _below(self, pointer: str, schema: Schema, stand: Stand) -> list[tuple[str, Json, Stand]]:
        found: list[tuple[str, Json, Stand]] = []
        if stand.scope.dialect.applicators.isdisjoint(schema):
            return found
        for part in parts(schema, stand.scope.dialect):
            steps = () if part.step is None else (part.step,)
            theirs = join(pointer, part.keyword, *steps)
            self._extent.part(theirs)
            ours = theirs if stand.ours == pointer and part.ours == part.keyword else join(stand.ours, part.ours, *steps)
            found.append((theirs, part.schema, Stand(ours, stand.scope)))
        return found

    def _target(self, reference: str, keyword: str, scope: Scope, where: str) -> str:
        """The user's pointer of the schema that a reference means."""
        uri, encoded = urldefrag(reference)
        resource = self.names.resource(uri, scope, where) if uri else scope.resource
        try:
            fragment = unquote(encoded, errors="strict")
        except UnicodeDecodeError:
            raise InvalidGrammar(f"`{keyword}` is not a valid URI fragment", where) from None
        if keyword == "$recursiveRef":
            dynamic = self.names.dynamic(resource, RECURSIVE, where)
            return resource if dynamic is None else dynamic
        if not fragment or fragment.startswith("/"):
            self._extent.text(resource, fragment)
            return self._found(resource + fragment, reference, where)
        dynamic = self.names.dynamic(resource, fragment, where) if keyword == "$dynamicRef" else None
        return dynamic if dynamic is not None else self.names.anchor(resource, fragment, where)

    def _found(self, pointer: str, reference: str, where: str) -> str:
        if pointer in self.schemas:
            return pointer
        pointer, value = self._looked_up(pointer, reference, where)
        if pointer not in self.schemas:
            enclosing = pointer
            while enclosing not in self.schemas:
                entered, enclosing = enclosing, enclosing.rpartition("/")[0]
            self.entered.add(entered)
            self.outside.append(pointer)
            self._extent.part(pointer)
            ours = join("/$defs", self._free_name())
            self._visit(pointer, value, Stand(ours, self.stands[enclosing].scope), inside=False)
        return pointer

    def _looked_up(self, pointer: str, reference: str, where: str) -> tuple[str, Json]:
        """The value at a pointer that may be written in several ways, with the one way in which it is written here."""
        value, written = self._document, ""
        for raw in pointer.split("/")[1:]:
            step: str | int = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and raw.isascii() and raw.isdigit() and len(raw) < 9 and int(raw) < len(value):
                step = int(raw)
                value = value[step]
            elif isinstance(value, dict) and step in value:
                value = value[str(step)]
            else:
                break
            written = join(written, step)
        else:
            if isinstance(value, (dict, bool)):
                return written, value
        raise InvalidGrammar(f"`$ref` points to {reference[:80]!r}, where there is no schema", where)

    def _free_name(self) -> str:
        """A name that the root's `$defs` leave free."""
        defined = self._document.get("$defs") if isinstance(self._document, dict) else None
        name = f"outside{len(self.outside)}"
        while isinstance(defined, dict) and name in defined:
            name += "_"
        return name
