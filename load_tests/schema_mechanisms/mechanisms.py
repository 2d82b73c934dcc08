"""What can be left out of how a schema becomes a grammar, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from grammar_service.backends import selection
from grammar_service.backends.llguidance.backend import LlguidanceBackend
from grammar_service.backends.xgrammar.backend import XgrammarBackend
from grammar_service.errors import UnsupportedGrammar
from grammar_service.guards import places
from grammar_service.guards.form_builder import FormBuilder
from grammar_service.schema import json_schema, rewrite
from grammar_service.schema.algebra.expression import ANYTHING, NOTHING, Empty
from grammar_service.schema.algebra.inexact import Inexact, Reason
from grammar_service.schema.algebra.objects import Objects
from grammar_service.schema.writing import arrays, objects

ALL = "all mechanisms"
_OFF = "left out"


@dataclass(frozen=True, slots=True)
class Mechanism:
    """`places`: objects, and their attributes that `instead` takes the place of, in a process that ends afterwards."""

    name: str
    places: tuple[tuple[Any, str], ...]
    instead: Callable[..., Any]

    def leave_out(self) -> None:
        for owner, attribute in self.places:
            setattr(owner, attribute, self.instead)


def _refused(*_: object, **__: object) -> NoReturn:
    raise UnsupportedGrammar(_OFF)


def _inexact(*_: object, **__: object) -> NoReturn:
    raise Inexact(_OFF)


def _uncounted_from_above(shape: Objects) -> list[Objects]:
    return [shape] if shape.most is None else _inexact()


def _uncounted_from_below(shape: Objects) -> list[Objects]:
    return [shape] if shape.least <= len(shape.required) else _inexact()


def _same_further_names(shape: Objects, other: Objects, _: Empty) -> list[Objects]:
    asked = [mine for _, mine in shape.regions if mine != NOTHING]
    return [] if all(also in (ANYTHING, mine) for mine in asked for _, also in other.regions) else _inexact()


MECHANISMS = (
    Mechanism(ALL, (), _refused),
    Mechanism("rewrites (schema/algebra, reading, writing)", ((json_schema, "rewrite"),), lambda *_, **__: Reason(_OFF)),
    Mechanism(
        "items of any kind counted by a guard (guards/forms.py)",
        tuple((FormBuilder, name) for name in ("form", "items", "anything")),
        _refused,
    ),
    Mechanism("strings and numbers counted by a guard (guards/item_set.py)", ((places, "items_of"),), lambda *_: _OFF),
    Mechanism("items counted by rules (writing/sequences.py)", ((arrays, "Sequence"),), _inexact),
    Mechanism("numbers left out that no backend writes (writing/narrowing.py)", ((json_schema, "narrowed"),), lambda schema: schema),
    Mechanism("members left out that cannot be described (rewrite.py)", ((rewrite, "_narrower"),), lambda _: False),
    Mechanism("`minProperties` as alternatives (writing/objects.py)", ((objects, "_with_enough"),), _uncounted_from_below),
    Mechanism("`maxProperties` as alternatives (writing/objects.py)", ((objects, "_with_few"),), _uncounted_from_above),
    Mechanism("differences by one more member (algebra/objects.py)", ((Objects, "_with_further_name"),), _same_further_names),
    Mechanism("llguidance for JSON", ((selection, "_candidates"),), lambda _: [XgrammarBackend()]),
    Mechanism("xgrammar for JSON", ((selection, "_candidates"),), lambda _: [LlguidanceBackend()]),
)
