"""Whether a scalar that has begun can still become one that may stand there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal

from grammar_service.guards.bodies import Added, Site, begins, endless_forms, goes_on_as, is_free, scalars, value_of
from grammar_service.guards.forms import Form

_ZEROS = (b"0", b"-0")


def has_way(
    site: Site,
    text: bytes,
    pending: bytes,
    is_string: bool,
    forms: Sequence[Form],
    added: Added,
    finished: Callable[[Hashable], object | None],
) -> bool:
    """`text`: of a string what it stands for, of others as it is written, with the `pending` start of an escape. `finished`: None of values
    that must not stand there."""
    if is_free(site) or not (site.root.passed(site.state) or added):
        return True
    kind = "string" if is_string else "number" if text[:1] in b"-0123456789" else "word"
    endless = endless_forms(site, kind, forms)
    if endless:
        return not (kind == "number" and text in _ZEROS and all(form.whole for form in endless) and finished(Decimal(0)) is None)
    values = (other for other in scalars(site, forms) if _may_become(other, text, pending, is_string))
    return any(finished(value_of(other)) is not None for other in values)


def _may_become(other: str, text: bytes, pending: bytes, is_string: bool) -> bool:
    if not is_string:
        return other[0] != '"' and begins(other, text.decode())
    value = value_of(other)
    return isinstance(value, bytes) and goes_on_as(value, text, pending)
