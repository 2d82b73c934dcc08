"""From cases to a schema that asks for nothing but what the backends enforce."""

from __future__ import annotations

from typing import Literal

from grammar_service.errors import GrammarError
from grammar_service.schema.algebra.arrays import Arrays
from grammar_service.schema.algebra.cases import FULL, Alternatives, Cases, Shape, Symbols
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, At, Every, Expression, Negated
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.numbers import Numbers
from grammar_service.schema.algebra.objects import Objects
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import dict_at
from grammar_service.schema.reading.reader import Reader
from grammar_service.schema.writing.arrays import ArrayWriter
from grammar_service.schema.writing.objects import ObjectWriter

_SCALARS = (Symbols, Numbers, Strings)
_Key = tuple[Alternatives, ...]
_ROOT = At("")


class Writer:
    """Writes one document. Schemas of objects and arrays become definitions, one for each set of values, which is what ends recursion.

    Raises Inexact where something is not known exactly, or where more than `most_schemas` would be written; it has the pointer of the
    schema that was being written, where no keyword is known. `_place` is that pointer.

    `narrow`: an optional member is forbidden where it must not match some schema and the other values cannot be described, if another
    alternative of the object allows it. `written`: the schemas that were written in all rounds.
    """

    def __init__(self, reader: Reader, most_schemas: int, narrow: bool = False) -> None:
        self._reader = reader
        self._narrow = narrow
        self._unwritable: dict[Expression, bool] = {}
        self._most = self._left = most_schemas
        self.written = 0
        self._names: dict[_Key, str] = {}
        self._empty: set[_Key] = set()
        self._texts: dict[Strings, Json] = {}
        self._waiting: list[tuple[str, Cases, str]] = []
        self._place = ""

    def document(self, of: Expression = _ROOT) -> dict[str, Json] | Literal[False]:
        try:
            return self._document(of)
        except Inexact as error:
            raise error if error.pointer is not None else Inexact(error.message, self._place) from None

    def _document(self, of: Expression) -> dict[str, Json] | Literal[False]:
        """Of some definitions it shows only when they are written that they have no values. What needs one of those has none either, and
        llguidance refuses to compile a reference to them: so all is written once more, where this is known."""
        while True:
            root, definitions = self._root_and_definitions(of)
            if root is False:
                return False
            empty = {key for key, name in self._names.items() if definitions[name] is False}
            if not empty:
                schema = root if isinstance(root, dict) else {}
                return {**schema, "$defs": definitions} if definitions else schema
            self._empty |= empty

    def _root_and_definitions(self, of: Expression) -> tuple[Json, dict[str, Json]]:
        """The root, and the definitions by name."""
        self._left, self._place = self._most, ""
        self._names.clear()
        root = self._schema(self.possible(of))
        definitions: dict[str, Json] = {}
        while self._waiting:
            name, cases, self._place = self._waiting.pop()
            definitions[name] = self._schema(cases)
        return root, definitions

    def _is_empty(self, expression: Expression) -> bool:
        """As far as it is known by now."""
        return self._reader.is_empty(expression) or (bool(self._empty) and _key_of(self.possible(expression)) in self._empty)

    def possible(self, expression: Expression) -> Cases:
        return self._reader.without_empty(self._reader.cases(expression))

    def inner(self, expression: Expression) -> Json:
        """The schema of a part: `true`, `false`, a schema in place, or a reference to a definition."""
        if expression in (ANYTHING, NOTHING):
            return expression == ANYTHING
        outer, self._place = self._place, expression.pointer if isinstance(expression, At) else self._place
        schema = self._in_place(expression)
        self._place = outer
        return schema

    def _is_unwritable(self, expression: Expression) -> bool:
        """Whether a narrower rewrite must forbid an optional member with these values, because they cannot be described."""
        if not self._narrow or not _excludes(expression):
            return False
        if expression not in self._unwritable:
            trial = Writer(self._reader, self._left)
            trial._empty = self._empty
            try:
                trial.document(expression)
            except GrammarError:
                self._unwritable[expression] = True
            else:
                self._unwritable[expression] = False
            self._left -= trial.written
        return self._unwritable[expression]

    def _in_place(self, expression: Expression) -> Json:
        cases = self.possible(expression)
        plain = all(isinstance(shape, _SCALARS) for kind in cases.by_type for shape in cases.of(kind).shapes)
        if plain or cases == Cases(FULL):
            return self._schema(cases)
        # Not by the expression: many references to one schema, and what they say beside it, often mean the same.
        key = _key_of(cases)
        if key in self._empty:
            return False
        if key not in self._names:
            self._names[key] = f"case{len(self._names)}"
            self._waiting.append((self._names[key], cases, self._place))
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _schema(self, cases: Cases) -> Json:
        if cases == Cases(FULL):
            return True
        branches = [branch for kind in FULL for branch in self._alternatives(kind, cases.of(kind))]
        self.written += len(branches) + 1
        self._left -= len(branches) + 1
        if self._left < 0:
            raise Inexact("the schema has too many combinations")
        if not branches:
            return False
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _alternatives(self, kind: str, alternatives: Alternatives) -> list[Json]:
        if alternatives == FULL[kind]:
            return [{"type": kind}]
        writer = ObjectWriter(self.inner, self._is_empty, self._is_unwritable)
        branches = [branch for shape in alternatives.shapes for branch in self._to_schemas(shape, writer)]
        if writer.forbidden - _names(branches):
            raise Inexact("what a member must not be cannot be described")
        return branches

    def _to_schemas(self, shape: Shape, objects: ObjectWriter) -> list[Json]:
        match shape:
            case Symbols(allowed):
                return [{"enum": list(allowed)}]
            case Numbers():
                return shape.to_schemas()
            case Strings():
                if shape not in self._texts:
                    self._texts[shape] = shape.to_schema()
                return [self._texts[shape]]
            case Arrays():
                return ArrayWriter(self._reader, self.inner, self._is_empty).to_schemas(shape)
            case Objects():
                return objects.to_schemas(shape)


def _excludes(expression: Expression) -> bool:
    """Whether its values must not match some schema."""
    return any(isinstance(part, Negated) for part in (expression.parts if isinstance(expression, Every) else (expression,)))


def _names(branches: list[Json]) -> set[str]:
    """Of the members that some of these objects may have."""
    members = (dict_at(branch, "properties") for branch in branches if isinstance(branch, dict))
    return {name for properties in members for name, member in properties.items() if member is not False}


def _key_of(cases: Cases) -> _Key:
    return tuple(cases.of(kind) for kind in FULL)
