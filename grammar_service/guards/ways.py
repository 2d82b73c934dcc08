"""Whether a scalar that has begun can still become one that may stand there."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from decimal import Decimal

from grammar_service.guards.bodies import Added, Site, begins, forms_at, is_free, value_of

_ZEROS = ("0", "-0")


def has_way(
    site: Site,
    text: bytes,
    pending: bytes,
    is_string: bool,
    added: Added,
    finished: Callable[[Hashable], object | None],
) -> bool:
    """`text`: of a string what it stands for, of others as it is written, with the `pending` start of an escape. `finished`: None of values
    that must not stand there."""
    if is_free(site) or not (site.root.passed(site.state) or added):
        return True
    if is_string:
        strings = site.root.strings_at(site.forms)
        return strings is None or site.root.remaining_strings(site.state, strings).can_become(
            text, pending, site.root.strings_spent_by(added, site.state)
        )
    return _other_has_way(site, text.decode(), finished)


def _other_has_way(site: Site, text: str, finished: Callable[[Hashable], object | None]) -> bool:
    forms, is_number = forms_at(site), text[:1] in "-0123456789"
    endless = [form for form in forms if is_number and "number" in form.endless]
    if endless:
        return not (text in _ZEROS and all(form.whole for form in endless) and finished(Decimal(0)) is None)
    listed = dict.fromkeys(other for form in forms for other in form.scalars if begins(other, text))
    if any(finished(value_of(other)) is not None for other in listed):
        return True
    ranges = dict.fromkeys(numbers for form in forms for numbers in form.numbers) if is_number else ()
    if any(numbers.is_unbounded_from(text) for numbers in ranges):
        return True
    # Each that must not stand there is that of an item: there are no more to look at than those.
    return any(finished(Decimal(number)) is not None for numbers in ranges for number in numbers.starting_with(text))
