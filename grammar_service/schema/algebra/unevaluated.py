"""`unevaluatedProperties` and `unevaluatedItems`, once the cases say what the other keywords have evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from grammar_service.json_text import Json
from grammar_service.pointer import join
from grammar_service.schema.algebra.arrays import Arrays
from grammar_service.schema.algebra.cases import Alternatives, Cases, Shape, known
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, At, Expression, every
from grammar_service.schema.algebra.objects import Objects, Seen, joined
from grammar_service.schema.keywords import Schema
from grammar_service.string_set import StringSet

_Rewrite = Callable[[Shape], Shape | None]


def closed(cases: Cases, schema: Schema, pointer: str) -> Cases:
    """What the two keywords of `schema` leave of its cases."""
    if "unevaluatedItems" in schema:
        asked = _at(schema["unevaluatedItems"], join(pointer, "unevaluatedItems"))
        cases = _rewritten(cases, "array", lambda shape: _array(shape, asked) if isinstance(shape, Arrays) else shape)
    if "unevaluatedProperties" in schema:
        wanted = _at(schema["unevaluatedProperties"], join(pointer, "unevaluatedProperties"))
        cases = _rewritten(cases, "object", lambda shape: _object(shape, wanted) if isinstance(shape, Objects) else shape)
    return cases


def forgotten(cases: Cases) -> Cases:
    """The cases without what they have evaluated."""
    cases = _rewritten(cases, "array", lambda shape: replace(shape, seen=0) if isinstance(shape, Arrays) else shape)
    return _rewritten(cases, "object", lambda shape: replace(shape, seen=Seen()) if isinstance(shape, Objects) else shape)


def _rewritten(cases: Cases, kind: str, rewrite: _Rewrite) -> Cases:
    alternatives = cases.of(kind)
    if alternatives.reason:
        return cases
    done = known(lambda: Alternatives(tuple(dict.fromkeys(new for shape in alternatives.shapes if (new := rewrite(shape)) is not None))))
    return Cases({**cases.by_type, kind: done})


def _array(shape: Arrays, asked: Expression) -> Arrays | None:
    if shape.seen is None:
        return shape
    prefix = tuple(item if index < shape.seen else every(item, asked) for index, item in enumerate(shape.prefix))
    prefix += (shape.rest,) * (shape.seen - len(prefix))
    return replace(shape, prefix=prefix, rest=every(shape.rest, asked), seen=None).tidy()


def _object(shape: Objects, asked: Expression) -> Objects | None:
    seen = shape.seen
    named = [(name, old if name in seen else every(old, asked)) for name, old in shape.named]
    # Names that were evaluated but are not named keep what their region asks of them.
    named += [(name, shape.asked_of(name)) for name in sorted(seen.names - dict(shape.named).keys())]
    known_names = seen.others or StringSet.of_strings(())
    inside = [(names.intersection(known_names), old) for names, old in shape.regions]
    outside = [(names.intersection(known_names.complement()), every(old, asked)) for names, old in shape.regions]
    regions = joined([(names, new) for names, new in [*inside, *outside] if not names.is_empty])
    return replace(shape, named=tuple(named), regions=regions, seen=Seen(others=StringSet.everything())).tidy()


def _at(schema: Json, pointer: str) -> Expression:
    return ANYTHING if schema is True or schema == {} else NOTHING if schema is False else At(pointer)
