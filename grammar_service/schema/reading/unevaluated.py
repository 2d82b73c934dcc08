"""`unevaluatedProperties` and `unevaluatedItems`, once the cases say what the other keywords have evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from grammar_service.regexes.string_set import StringSet
from grammar_service.schema.algebra.arrays import Arrays
from grammar_service.schema.algebra.cases import Alternatives, Cases, Shape, known
from grammar_service.schema.algebra.expression import Expression, at, every, negated
from grammar_service.schema.algebra.objects import Objects, Seen, joined
from grammar_service.schema.keywords import Schema
from grammar_service.schema.pointer import join

_Change = Callable[[Shape], Shape | None]


def closed(cases: Cases, schema: Schema, pointer: str) -> Cases:
    """What the two keywords of `schema` leave of its cases."""
    if "unevaluatedItems" in schema:
        asked = at(schema["unevaluatedItems"], join(pointer, "unevaluatedItems"))
        cases = _changed(cases, "array", lambda shape: _array(shape, asked) if isinstance(shape, Arrays) else shape)
    if "unevaluatedProperties" in schema:
        wanted = at(schema["unevaluatedProperties"], join(pointer, "unevaluatedProperties"))
        cases = _changed(cases, "object", lambda shape: _object(shape, wanted) if isinstance(shape, Objects) else shape)
    return cases


def forgotten(cases: Cases) -> Cases:
    """The cases without what they have evaluated."""
    cases = _changed(cases, "array", lambda shape: replace(shape, seen=0, seen_items=()) if isinstance(shape, Arrays) else shape)
    return _changed(cases, "object", lambda shape: replace(shape, seen=Seen()) if isinstance(shape, Objects) else shape)


def _changed(cases: Cases, kind: str, change: _Change) -> Cases:
    def make() -> Alternatives:
        return Alternatives(tuple(dict.fromkeys(new for shape in cases.of(kind).shapes if (new := change(shape)) is not None)))

    return Cases({**cases.by_type, kind: known(make)})


def _array(shape: Arrays, asked: Expression) -> Arrays | None:
    if shape.seen is None:
        return shape
    if shape.seen_items:
        # One of those that have been evaluated, or as asked.
        asked = negated(every(negated(asked), *(negated(item) for item in shape.seen_items)))
    prefix = tuple(item if index < shape.seen else every(item, asked) for index, item in enumerate(shape.prefix))
    prefix += (shape.rest,) * (shape.seen - len(prefix))
    return replace(shape, prefix=prefix, rest=every(shape.rest, asked), seen=None, seen_items=()).tidy()


def _object(shape: Objects, asked: Expression) -> Objects | None:
    seen = shape.seen
    named = [(name, old if name in seen else every(old, asked)) for name, old in shape.named]
    # Names that were evaluated but are not named keep what their region asks of them.
    further = sorted(seen.names - dict(shape.named).keys())
    named += [(name, shape.asked_of(name)) for name in further]
    known_names = seen.others or StringSet.of_strings(())
    inside = [(names.intersection(known_names), old) for names, old in shape.regions]
    outside = [(names.intersection(known_names.complement()), every(old, asked)) for names, old in shape.regions]
    regions = joined([(names, new) for names, new in [*inside, *outside] if not names.is_empty])
    undeclared = shape.undeclared.union(further)
    return replace(shape, named=tuple(named), regions=regions, seen=Seen(others=StringSet.everything()), undeclared=undeclared).tidy()
