"""Places for all: a tenant has many where others have few, and nobody all."""

from __future__ import annotations

from itertools import cycle, islice

from deployments.api.bounds.places import Places


def taken(places: Places, tenant: str) -> int:
    count = 0
    while places.has_one_for(tenant):
        places.take(tenant)
        count += 1
    return count


def test_one_tenant_has_seven_eighths_and_the_next_one_most_of_the_rest() -> None:
    places = Places(64)
    assert taken(places, "one") == 56
    assert taken(places, "two") == 7
    assert len(places) == 63
    for _ in range(56):
        places.give_back("one")
    assert taken(places, "three") == 50


def test_who_is_nobody_has_all() -> None:
    assert taken(Places(64), "") == 64


def test_floods_side_by_side_leave_something_for_the_next() -> None:
    places = Places(2048)
    for tenant in islice(cycle("abcdef"), 4096):
        if places.has_one_for(tenant):
            places.take(tenant)
    assert places.has_one_for("light")
