"""From expressions to cases: what each keyword of JSON Schema 2020-12 says, type by type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from grammar_service.effort import Effort
from grammar_service.json_text import Json, parse_json
from grammar_service.pointer import join as pointer_to
from grammar_service.pointer import of_fragment
from grammar_service.schema.algebra import array_keywords, object_keywords, scalar_keywords, unevaluated
from grammar_service.schema.algebra.cases import EVERYTHING, NONE, Alternatives, Cases
from grammar_service.schema.algebra.expression import At, Every, Exactly, Expression, Negated, every, negated
from grammar_service.schema.algebra.inexact import Inexact
from grammar_service.schema.algebra.objects import Objects
from grammar_service.schema.algebra.pattern import Pattern
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.algebra.values import cases_of_value
from grammar_service.schema.keywords import Schema

MAX_STEPS = 3000
"""Schemas read for one document, those that are read again in another combination included."""
MAX_BRANCHES = 24
"""Branches of `oneOf`, or of `anyOf` beside `unevaluated…`, that are told apart."""
MAX_DEPTH = 60
MAX_EFFORT = 1_000_000
"""For all patterns and combinations of one document: about a second."""

Read = Callable[[Expression], Cases]


class Reader:
    """Cases of the expressions over one document, which must have all its references checked.

    Raises Inexact where the whole takes more than MAX_STEPS.
    """

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        self._schemas = schemas
        self._known: dict[tuple[Expression, bool], Cases] = {}
        self._patterns: dict[str, Pattern] = {}
        self._effort = Effort(MAX_EFFORT)
        self._steps = 0
        self._depth = 0

    def cases(self, expression: Expression, annotated: bool = False) -> Cases:
        """`annotated`: alternatives are told apart by what they have evaluated, and say so."""
        found = self._known.get((expression, annotated))
        if found is None:
            self._steps += 1
            self._depth += 1
            if self._steps > MAX_STEPS or self._depth > MAX_DEPTH:
                raise Inexact("the schema has too many combinations")
            found = self._known[expression, annotated] = self._read(expression, annotated)
            self._depth -= 1
        return found

    def _read(self, expression: Expression, annotated: bool) -> Cases:
        match expression:
            case At(pointer):
                return self._schema(self._schemas[pointer], pointer, annotated)
            case Negated(inner):
                return self.cases(inner).complement(self._effort)
            case Exactly(text):
                return cases_of_value(parse_json(text, "the value"))
            case Every(parts):
                cases = EVERYTHING
                for part in parts:
                    cases = self._met(cases, self.cases(part, annotated))
                return cases

    def _schema(self, schema: Json, pointer: str, annotated: bool) -> Cases:
        if not isinstance(schema, dict):
            return EVERYTHING if schema is True else NONE
        cases = EVERYTHING
        deep = annotated or bool({"unevaluatedItems", "unevaluatedProperties"} & schema.keys())
        for assertion in self._assertions(schema, pointer, deep):
            cases = self._met(cases, assertion)
        if deep:
            cases = unevaluated.closed(cases, schema, pointer)
        return cases if annotated else unevaluated.forgotten(cases) if deep else cases

    def _assertions(self, schema: Schema, pointer: str, annotated: bool) -> Iterator[Cases]:
        """One after another, in the order of the keywords, which is the order of properties too."""
        said: set[str] = set()
        for keyword, value in schema.items():
            group = _GROUPS.get(keyword, keyword)
            if group in said:
                continue
            said.add(group)
            if group in _APPLICATORS:
                yield _APPLICATORS[group](self, schema, pointer, annotated)
            elif group == "array items":
                yield array_keywords.items(schema, pointer, annotated)
            elif group == "object members":
                yield object_keywords.members(schema, pointer, annotated, self._pattern)
            elif group == "array contains":
                yield array_keywords.contains(schema, pointer, annotated)
            elif keyword == "dependentRequired":
                yield object_keywords.dependent_required(value, self._effort)
            elif keyword == "pattern":
                yield Cases.about("string", Alternatives((Strings(patterns=(self._pattern(str(value)),)),)))
            elif keyword == "propertyNames":
                yield object_keywords.names(self.cases(At(pointer_to(pointer, keyword))))
            else:
                yield _plain(keyword, value)

    def _met(self, left: Cases, right: Cases) -> Cases:
        return left.meet(right, self._effort)

    def _pattern(self, text: str) -> Pattern:
        return self._patterns.setdefault(text, Pattern(text, self._effort))

    def _all_of(self, schema: Schema, pointer: str, annotated: bool) -> Cases:
        cases = EVERYTHING
        for branch in _branches(schema["allOf"], pointer, "allOf"):
            cases = self._met(cases, self.cases(branch, annotated))
        return cases

    def _any_of(self, schema: Schema, pointer: str, annotated: bool) -> Cases:
        branches = _branches(schema["anyOf"], pointer, "anyOf")
        if annotated:
            return self._told_apart(branches)
        cases = NONE
        for branch in branches:
            cases = cases.join(self.cases(branch))
        return cases

    def _told_apart(self, branches: list[Expression]) -> Cases:
        """`anyOf` as disjoint cases, one for each set of branches that hold together."""
        some = NONE
        none = EVERYTHING
        for branch in branches:
            holds, fails = self.cases(branch, True), self.cases(negated(branch))
            some = self._met(some, holds).beside(self._met(some, fails)).beside(self._met(none, holds))
            none = self._met(none, fails)
        return some

    def _one_of(self, schema: Schema, pointer: str, annotated: bool) -> Cases:
        branches = _branches(schema["oneOf"], pointer, "oneOf")
        if len(branches) > MAX_BRANCHES:
            raise Inexact("so many branches of `oneOf` are not told apart")
        cases = NONE
        for index, branch in enumerate(branches):
            alone = self.cases(branch, annotated)
            for other in branches[:index] + branches[index + 1 :]:
                if not self.is_empty(every(branch, other)):
                    alone = self._met(alone, self.cases(negated(other)))
            cases = cases.beside(alone) if annotated else cases.join(alone)
        return cases

    def _not(self, schema: Schema, pointer: str, annotated: bool) -> Cases:
        return self.cases(negated(At(pointer_to(pointer, "not"))))

    def _if(self, schema: Schema, pointer: str, annotated: bool) -> Cases:
        if "if" not in schema:
            return EVERYTHING
        condition = At(pointer_to(pointer, "if"))
        holds = self.cases(condition, annotated)
        then = self.cases(At(pointer_to(pointer, "then")), annotated) if "then" in schema else EVERYTHING
        other = self.cases(At(pointer_to(pointer, "else")), annotated) if "else" in schema else EVERYTHING
        if not annotated and then == EVERYTHING == other:
            return EVERYTHING
        fails = self._met(self.cases(negated(condition)), other)
        held = self._met(holds, then)
        return held.beside(fails) if annotated else held.join(fails)

    def _ref(self, schema: Schema, pointer: str, annotated: bool) -> Cases:
        return self.cases(At(of_fragment(str(schema["$ref"])[1:])), annotated)

    def _dependent_schemas(self, schema: Schema, pointer: str, annotated: bool) -> Cases:
        cases = EVERYTHING
        dependent = schema["dependentSchemas"]
        for name in dependent if isinstance(dependent, dict) else ():
            asked = self.cases(At(pointer_to(pointer, "dependentSchemas", name)), annotated)
            cases = self._met(cases, object_keywords.where_present(name, asked, self._effort))
        return cases

    def is_empty(self, expression: Expression) -> bool:
        """True only where it is certain that no value satisfies it."""
        return self.without_empty(self.cases(expression)).is_empty

    def without_empty(self, cases: Cases) -> Cases:
        """Without the objects that need a property for which no value is left, and the arrays with such an item."""
        return cases.filtered(self._is_possible)

    def _is_possible(self, shape: object) -> bool:
        if not isinstance(shape, Objects):
            return True
        asked = dict(shape.named)
        return not any(self._is_plainly_empty(asked[name]) for name in shape.required)

    def _is_plainly_empty(self, expression: Expression) -> bool:
        # A single schema is left to the backends; a combination is what may have become empty here.
        if isinstance(expression, At):
            return False
        known = self._known.get((expression, False))
        if known is None and self._depth > MAX_DEPTH // 2:
            return False
        return (known or self.cases(expression)).is_empty


def _branches(value: Json, pointer: str, keyword: str) -> list[Expression]:
    return [At(pointer_to(pointer, keyword, index)) for index in range(len(value) if isinstance(value, list) else 0)]


def _plain(keyword: str, value: Json) -> Cases:
    for table in (scalar_keywords.ASSERTIONS, array_keywords.ASSERTIONS, object_keywords.ASSERTIONS):
        if keyword in table:
            return table[keyword](value)
    if keyword in _SILENT:
        return EVERYTHING
    raise Inexact(f"`{keyword}` is not rewritten")


_GROUPS = {
    **dict.fromkeys(("items", "prefixItems"), "array items"),
    **dict.fromkeys(("contains", "minContains", "maxContains"), "array contains"),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties"), "object members"),
    **dict.fromkeys(("if", "then", "else"), "if"),
}
"""Keywords of which one cannot be read without the others."""
_APPLICATORS: dict[str, Callable[[Reader, Schema, str, bool], Cases]] = {
    "allOf": Reader._all_of,
    "anyOf": Reader._any_of,
    "oneOf": Reader._one_of,
    "not": Reader._not,
    "if": Reader._if,
    "$ref": Reader._ref,
    "dependentSchemas": Reader._dependent_schemas,
}
_SILENT = frozenset({"$defs", "definitions", "unevaluatedItems", "unevaluatedProperties"})
"""Read elsewhere, or nothing that is asserted."""
