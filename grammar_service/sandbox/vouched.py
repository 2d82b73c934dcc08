"""What a child says of a spec, as far as its parent can find out that it is so. A child may be a stranger's: keys name what everybody's
artifacts are taken for, and so are computed here once more."""

from __future__ import annotations

from dataclasses import replace

from grammar_service.backends import backend_named
from grammar_service.errors import GrammarError, PoolUnavailable
from grammar_service.key import grammar_key
from grammar_service.limits import Limits, check_limits
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.sandbox.wire import Resolved
from grammar_service.spec import GrammarSpec


def vouched(told: Resolved, asked: GrammarSpec, relax: Relax, limits: Limits, fingerprint: str) -> Resolution:
    """The resolution that a child tells of the spec that it was `asked` about; its keys are those of the spec, and nobody has checked
    what the library is to be given. Costs time linear in the text. Raises PoolUnavailable where it cannot be."""
    try:
        spec = _spec(told, asked, relax)
        check_limits(spec, limits)
        named = [(told.key, told.backend)] + ([(told.stopgap.key, told.stopgap.backend)] if told.stopgap else [])
        if any(key != grammar_key(spec, name, backend_named(name).version, fingerprint) for key, name in named):
            raise PoolUnavailable("the compile child tells a key that is not the grammar's")
    except GrammarError as error:
        raise PoolUnavailable(f"the compile child tells a key of what has none: {error}") from None
    return Resolution(spec, told.key, told.backend, told.stopgap, told.library_source, told.warnings, told.left_out)


def _spec(told: Resolved, asked: GrammarSpec, relax: Relax) -> GrammarSpec:
    """The one that is left, where something may be and was left out: another schema, of which no more is closed."""
    less = told.relaxed
    if less is None:
        return asked
    same = replace(less, text=asked.text, closed=asked.closed) == asked
    if relax is Relax.NOTHING or not told.left_out or not same or less.closed > asked.closed:
        raise PoolUnavailable("the compile child tells of another grammar than it was asked about")
    return less
