"""What each backend makes of a constraint, without compiling it."""

from __future__ import annotations

from dataclasses import dataclass

from grammar_service.backends import backend_named, select_backend, select_stopgap
from grammar_service.errors import GrammarError
from grammar_service.limits import Limits, check_limits
from grammar_service.relaxation import relaxed
from grammar_service.resolve import warnings_of
from grammar_service.schema.fault import Fault
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.warning import ConstraintWarning

BACKENDS = ("xgrammar", "llguidance")
REGULAR = {GrammarKind.REGEX: ("automata",)}
"""Asked as well, about the kinds that they are for."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a backend would weaken or not take at all; nothing: it enforces all of the constraint."""

    backend: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """`served_by` is the chosen backend and `first_by` the one that stands in for it until it has compiled; `refusal` is why there is
    none; `warnings` tell what asserts nothing; `left_out` are the pointers of what would be checked in the end where that is allowed. A
    constraint that is at fault itself has no opinions."""

    spec: GrammarSpec
    opinions: tuple[Opinion, ...]
    served_by: str | None = None
    first_by: str | None = None
    refusal: GrammarError | None = None
    warnings: tuple[ConstraintWarning, ...] = ()
    left_out: tuple[str, ...] = ()


def inspect(spec: GrammarSpec) -> Inspection:
    """Within the usual limits. Pure and quick. Never raises a GrammarError: it is part of the answer."""
    try:
        check_limits(spec, Limits())
        opinions = tuple(Opinion(name, tuple(backend_named(name).unsupported(spec))) for name in (*REGULAR.get(spec.kind, ()), *BACKENDS))
    except GrammarError as error:
        return Inspection(spec, (), refusal=error)
    try:
        backend = select_backend(spec)
    except GrammarError as error:
        return Inspection(spec, opinions, refusal=error, left_out=_left_out(spec))
    first = select_stopgap(spec, backend)
    return Inspection(spec, opinions, backend.name, first.name if first else None, warnings=warnings_of(spec))


def _left_out(spec: GrammarSpec) -> tuple[str, ...]:
    try:
        return relaxed(spec).left_out
    except GrammarError:
        return ()
