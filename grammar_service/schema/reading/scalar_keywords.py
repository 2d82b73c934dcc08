"""Keywords about a value as a whole, about numbers and about strings."""

from __future__ import annotations

from collections.abc import Callable

from grammar_service.schema.algebra.cases import EMPTY, FULL, NONE, Alternatives, Cases, Shape
from grammar_service.schema.algebra.numbers import Bound, Numbers, exact
from grammar_service.schema.algebra.strings import Strings
from grammar_service.schema.algebra.values import cases_of_value
from grammar_service.schema.json_text import Json

Assertion = Callable[[Json], Cases]


def _type(value: Json) -> Cases:
    names = value if isinstance(value, list) else [value]
    cases = NONE
    for name in names:
        cases = cases.join(Cases.only("number", Numbers(whole=True)) if name == "integer" else Cases({str(name): FULL[str(name)]}))
    return cases


def _enum(value: Json) -> Cases:
    """Strings as one alternative, all other values one by one."""
    values = value if isinstance(value, list) else []
    texts = tuple(item for item in values if isinstance(item, str))
    cases = Cases.only("string", Strings(values=texts)) if texts else NONE
    for item in values:
        if not isinstance(item, str):
            cases = cases.join(cases_of_value(item))
    return cases


def _number(make: Callable[[int | float], Numbers]) -> Assertion:
    return lambda value: Cases.about("number", one_or_none(make(_checked(value)).tidy()))


def _string(make: Callable[[Json], Strings]) -> Assertion:
    return lambda value: Cases.about("string", Alternatives((make(value),)))


def one_or_none(shape: Shape | None) -> Alternatives:
    """A shape that `tidy` has left, or nothing where it has left none."""
    return EMPTY if shape is None else Alternatives((shape,))


def _checked(value: Json) -> int | float:
    assert isinstance(value, (int, float)), "`check_shape` has seen to it"
    return value


def count(value: Json) -> int:
    """A count, which JSON Schema allows to be written as a float."""
    return int(_checked(value))


ASSERTIONS: dict[str, Assertion] = {
    "type": _type,
    "enum": _enum,
    "const": lambda value: _enum([value]),
    "minimum": _number(lambda value: Numbers(low=Bound(value, False))),
    "exclusiveMinimum": _number(lambda value: Numbers(low=Bound(value, True))),
    "maximum": _number(lambda value: Numbers(high=Bound(value, False))),
    "exclusiveMaximum": _number(lambda value: Numbers(high=Bound(value, True))),
    "multipleOf": _number(lambda value: Numbers(step=exact(value))),
    "minLength": _string(lambda value: Strings(least=count(value))),
    "maxLength": _string(lambda value: Strings(most=count(value))),
}
