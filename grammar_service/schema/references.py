"""References inside one schema document; nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grammar_service.errors import InvalidGrammar, UnsupportedGrammar
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import IN_PLACE, Schema, list_at, subschemas
from grammar_service.schema.pointer import join, of_fragment

_MAX_CHAIN = 64


_DEFINITIONS = frozenset({"$defs", "definitions"})


class References:
    """All schemas of a document by pointer (see `walk`), and which ones each leads to.

    Raises:
        InvalidGrammar: a reference points nowhere, or a schema refers to itself without consuming anything.
        UnsupportedGrammar: a reference outside the document, or by anything but a JSON pointer.
    """

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        self.schemas = schemas
        self._targets = {pointer: self._target(pointer, schema) for pointer, schema in self.schemas.items() if _refers(schema)}
        self._refuse_empty_cycles()

    @property
    def targets(self) -> list[str]:
        """The pointers that references lead to."""
        return list(self._targets.values())

    def target_of(self, pointer: str) -> str:
        """Where the reference of the schema at a pointer leads."""
        return self._targets[pointer]

    def parts(self, pointer: str) -> list[str]:
        """What a schema asks of a value, or of a part of it: its subschemas, but for definitions, and where its reference leads."""
        schema = self.schemas[pointer]
        if not isinstance(schema, dict):
            return []
        asking = {keyword: value for keyword, value in schema.items() if keyword not in _DEFINITIONS}
        inner = [at for at, _ in subschemas(pointer, asking)]
        return [*inner, self._targets[pointer]] if pointer in self._targets else inner

    def inside(self, starts: Iterable[str]) -> set[str]:
        """These schemas and all that they lead to."""
        found, waiting = set[str](), list(starts)
        while waiting:
            if (pointer := waiting.pop()) not in found:
                found.add(pointer)
                waiting += self.parts(pointer)
        return found

    def leading_to(self, ends: Iterable[str]) -> set[str]:
        """These schemas and all that lead to one of them."""
        users: dict[str, list[str]] = {}
        for pointer in self.schemas:
            for part in self.parts(pointer):
                users.setdefault(part, []).append(pointer)
        found, waiting = set[str](), list(ends)
        while waiting:
            if (pointer := waiting.pop()) not in found:
                found.add(pointer)
                waiting += users.get(pointer, ())
        return found

    def same_value(self, pointer: str) -> list[str]:
        """The schemas that a schema asks of the same value: where its reference leads, and its branches."""
        schema = self.schemas[pointer]
        if not isinstance(schema, dict):
            return []
        steps = [self._targets[pointer]] if pointer in self._targets else []
        for keyword in sorted(IN_PLACE - {"$ref"}):
            steps += [join(pointer, keyword, index) for index in range(len(list_at(schema, keyword)))]
        return steps

    def resolved(self, schema: Json) -> Json:
        """The schema that a chain of bare references ends in."""
        for _ in range(_MAX_CHAIN):
            if not (isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str)):
                break
            schema = self.schemas[of_fragment(reference[1:])]
        return schema

    def _target(self, pointer: str, schema: Json) -> str:
        where = join(pointer, "$ref")
        reference = schema["$ref"] if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise UnsupportedGrammar("`$ref` must stay inside the schema (`#/…`): nothing is fetched", where)
        try:
            target = of_fragment(reference[1:])
        except UnicodeDecodeError:
            raise InvalidGrammar("`$ref` is not a valid URI fragment", where) from None
        if target and not target.startswith("/"):
            raise UnsupportedGrammar("`$ref` must be a JSON pointer (`#/…`); anchors are not supported", where)
        if target not in self.schemas:
            raise InvalidGrammar(f"`$ref` points to {reference[:80]!r}, where there is no schema", where)
        return target

    def _refuse_empty_cycles(self) -> None:
        """A depth-first search along the applicators that stay at the same value."""
        done: set[str] = set()
        for start, schema in self.schemas.items():
            if start in done or not (isinstance(schema, dict) and IN_PLACE & schema.keys()):
                continue
            path: set[str] = set()
            stack = [(start, False)]
            while stack:
                pointer, leaving = stack.pop()
                if leaving:
                    path.discard(pointer)
                    done.add(pointer)
                    continue
                if pointer in path:
                    raise InvalidGrammar("the schema refers to itself without end", pointer or None)
                if pointer in done:
                    continue
                path.add(pointer)
                stack.append((pointer, True))
                stack.extend((step, False) for step in self.same_value(pointer))


def _refers(schema: Json) -> bool:
    return isinstance(schema, dict) and "$ref" in schema


def asserting(schema: Schema, *ignored: str) -> set[str]:
    """Keywords of a normalised schema that say something about the value, without definitions and the ones named."""
    return set(schema) - _DEFINITIONS - {*ignored}
