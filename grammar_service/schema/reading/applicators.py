"""Keywords that apply whole schemas to the same value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from grammar_service.schema.algebra.cases import EVERYTHING, NONE, Cases
from grammar_service.schema.algebra.expression import At, Expression, negated
from grammar_service.schema.keywords import Schema
from grammar_service.schema.pointer import join, of_fragment
from grammar_service.schema.reading import object_keywords

if TYPE_CHECKING:
    from grammar_service.schema.reading.reader import Reader


def _all_of(reader: Reader, schema: Schema, pointer: str) -> Cases:
    cases = EVERYTHING
    for branch in _branches(schema, pointer, "allOf"):
        cases = reader.meet(cases, reader.cases(branch))
    return cases


def _any_of(reader: Reader, schema: Schema, pointer: str) -> Cases:
    branches = _branches(schema, pointer, "anyOf")
    if reader.is_annotated:
        return _told_apart(reader, branches)
    cases = NONE
    for branch in branches:
        cases = cases.join(reader.cases(branch))
    return cases


def _told_apart(reader: Reader, branches: list[Expression]) -> Cases:
    """`anyOf` as disjoint cases, one for each set of branches that hold together."""
    some = NONE
    none = EVERYTHING
    for branch in branches:
        holds, fails = reader.cases(branch), reader.plain.cases(negated(branch))
        some = reader.meet(some, holds).beside(reader.meet(some, fails)).beside(reader.meet(none, holds))
        none = reader.meet(none, fails)
    return some


def _one_of(reader: Reader, schema: Schema, pointer: str) -> Cases:
    branches = _branches(schema, pointer, "oneOf")
    cases = NONE
    for index, branch in enumerate(branches):
        alone = reader.cases(branch)
        for other in branches[:index] + branches[index + 1 :]:
            alone = reader.minus(alone, other)
        cases = cases.beside(alone) if reader.is_annotated else cases.join(alone)
    return cases


def _not(reader: Reader, schema: Schema, pointer: str) -> Cases:
    return reader.minus(EVERYTHING, At(join(pointer, "not")))


def _if(reader: Reader, schema: Schema, pointer: str) -> Cases:
    if "if" not in schema:
        return EVERYTHING
    condition = At(join(pointer, "if"))
    holds = reader.cases(condition)
    then = reader.cases(At(join(pointer, "then"))) if "then" in schema else EVERYTHING
    other = reader.cases(At(join(pointer, "else"))) if "else" in schema else EVERYTHING
    if not reader.is_annotated and then == EVERYTHING == other:
        return EVERYTHING
    fails = reader.minus(other, condition)
    held = reader.meet(holds, then)
    return held.beside(fails) if reader.is_annotated else held.join(fails)


def _ref(reader: Reader, schema: Schema, pointer: str) -> Cases:
    return reader.cases(At(of_fragment(str(schema["$ref"])[1:])))


def _dependent_schemas(reader: Reader, schema: Schema, pointer: str) -> Cases:
    cases = EVERYTHING
    dependent = schema["dependentSchemas"]
    for name in dependent if isinstance(dependent, dict) else ():
        asked = reader.cases(At(join(pointer, "dependentSchemas", name)))
        cases = reader.meet(cases, object_keywords.where_present(name, asked, reader.document.effort))
    return cases


def _branches(schema: Schema, pointer: str, keyword: str) -> list[Expression]:
    listed = schema[keyword]
    return [At(join(pointer, keyword, index)) for index in range(len(listed) if isinstance(listed, list) else 0)]


APPLICATORS: dict[str, Callable[[Reader, Schema, str], Cases]] = {
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _ref,
    "dependentSchemas": _dependent_schemas,
}
