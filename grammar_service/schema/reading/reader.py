"""From expressions to cases: what each keyword of JSON Schema 2020-12 says, type by type."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from grammar_service.schema.algebra.cases import EVERYTHING, NONE, Alternatives, Cases
from grammar_service.schema.algebra.expression import NOTHING, At, Every, Exactly, Expression, Negated
from grammar_service.schema.algebra.objects import Objects
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.algebra.values import cases_of_value
from grammar_service.schema.json_text import Json, parse_json
from grammar_service.schema.keywords import Schema
from grammar_service.schema.pointer import join
from grammar_service.schema.reading import array_keywords, object_keywords, scalar_keywords, unevaluated
from grammar_service.schema.reading.applicators import APPLICATORS
from grammar_service.schema.reading.document import Document


class Reader:
    """Cases of the expressions over one document.

    `annotated` is the reader beside it whose alternatives are told apart by what they have evaluated, and say so; `plain` is the other
    one. Raises Inexact where the document takes too much.
    """

    def __init__(self, document: Document, plain: Reader | None = None) -> None:
        self.document = document
        self.plain = plain or self
        self.is_annotated = plain is not None
        self._known: dict[Expression, Cases] = {}
        self._open: set[Expression] = set()

    @cached_property
    def annotated(self) -> Reader:
        return self if self.is_annotated else Reader(self.document, self)

    def cases(self, expression: Expression) -> Cases:
        found = self._known.get(expression)
        if found is None:
            self._open.add(expression)
            try:
                self.document.enter()
                found = self._known[expression] = self._read(expression)
            finally:
                self._open.discard(expression)
                self.document.leave()
        return found

    def meet(self, left: Cases, right: Cases) -> Cases:
        return left.meet(right, self.document.effort, self._is_possible)

    def minus(self, left: Cases, expression: Expression) -> Cases:
        """What is left without the values of an expression."""
        return left.minus(self.plain.cases(expression), self.document.effort, self._is_possible, self.plain._is_surely_empty)

    def _read(self, expression: Expression) -> Cases:
        match expression:
            case At(pointer):
                return self._schema(self.document.schemas[pointer], pointer)
            case Negated(inner):
                return self.minus(EVERYTHING, inner)
            case Exactly(text):
                return cases_of_value(parse_json(text, "the value"))
            case Every(parts):
                cases = EVERYTHING
                for part in parts:
                    cases = cases if isinstance(part, Negated) else self.meet(cases, self.cases(part))
                # Last, since more can be taken from what is known than from everything.
                for part in parts:
                    cases = self.minus(cases, part.inner) if isinstance(part, Negated) else cases
                return cases

    def _schema(self, schema: Json, pointer: str) -> Cases:
        if not isinstance(schema, dict):
            return EVERYTHING if schema is True else NONE
        if self.is_annotated or not {"unevaluatedItems", "unevaluatedProperties"} & schema.keys():
            return self._asserted(schema, pointer)
        return unevaluated.forgotten(self.annotated._asserted(schema, pointer))

    def _asserted(self, schema: Schema, pointer: str) -> Cases:
        cases = EVERYTHING
        for keyword, assertion in self._assertions(schema, pointer):
            cases = self.meet(cases, assertion).blaming(pointer, keyword)
        return unevaluated.closed(cases, schema, pointer) if self.is_annotated else cases

    def _assertions(self, schema: Schema, pointer: str) -> Iterator[tuple[str, Cases]]:
        """One after another, in the order of the keywords, which is the order of properties too; conditions come last, whose properties say
        more of those that the schema has."""
        said: set[str] = set()
        for keyword in sorted(schema, key=CONDITIONS.__contains__):
            group = _GROUPS.get(keyword, keyword)
            if group not in said:
                said.add(group)
                yield keyword, self._assertion(group, schema, pointer)

    def _assertion(self, group: str, schema: Schema, pointer: str) -> Cases:
        """What a keyword, or those that cannot be read without one another, say."""
        if group in APPLICATORS:
            return APPLICATORS[group](self, schema, pointer)
        match group:
            case "array items":
                return array_keywords.items(schema, pointer, self.is_annotated)
            case "object members":
                return object_keywords.members(schema, pointer, self.is_annotated, self.document.pattern)
            case "array contains":
                return array_keywords.contains(schema, pointer, self.is_annotated)
            case "dependentRequired":
                return object_keywords.dependent_required(schema[group], self.document.effort)
            case "pattern" | "format":
                pattern = self.document.pattern(str(schema[group]), group == "format")
                return Cases.about("string", Alternatives((Strings(patterns=(pattern,)),)))
            case "propertyNames":
                return object_keywords.names(self.plain.cases(At(join(pointer, group))))
        return EVERYTHING if group in _SILENT else _ASSERTIONS[group](schema[group])

    def is_empty(self, expression: Expression) -> bool:
        """True only where it is certain that no value satisfies it."""
        return self.without_empty(self.plain.cases(expression)).is_empty

    def without_empty(self, cases: Cases) -> Cases:
        """Without the objects that need a property for which no value is left, and the arrays with such an item."""
        return cases.filtered(self._is_possible)

    def _is_possible(self, shape: object) -> bool:
        if not isinstance(shape, Objects):
            return True
        asked = dict(shape.named)
        return not any(self.plain._is_plainly_empty(asked[name]) for name in shape.required)

    def _is_surely_empty(self, expression: Expression) -> bool:
        return expression == NOTHING or self._is_plainly_empty(expression)

    def _is_plainly_empty(self, expression: Expression) -> bool:
        # A single schema is left to the backends; a combination is what may have become empty here.
        if isinstance(expression, At):
            return False
        known = self._known.get(expression)
        if known is None and (self.document.is_deep or expression in self._open):
            return False
        return (known or self.cases(expression)).is_empty


_ASSERTIONS = {**scalar_keywords.ASSERTIONS, **array_keywords.ASSERTIONS, **object_keywords.ASSERTIONS}
_GROUPS = {
    **dict.fromkeys(("items", "prefixItems"), "array items"),
    **dict.fromkeys(("contains", "minContains", "maxContains"), "array contains"),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties"), "object members"),
    **dict.fromkeys(("if", "then", "else"), "if"),
}
"""Keywords of which one cannot be read without the others."""
CONDITIONS = frozenset({"if", "then", "else", "not", "dependentSchemas", "dependentRequired"})
"""Read last: a schema's own `properties` say in which order members come, and these say more of some."""
_SILENT = frozenset({"$defs", "definitions", "unevaluatedItems", "unevaluatedProperties"})
"""Read elsewhere, or nothing that is asserted."""
