"""Salts: one for each tenant and client's salt, the same at every ingress."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.access.prefixes import SALT, TenantPrefixes

PREFIXES = TenantPrefixes(b"secret", shared=False)


def salt(tenant: str, asked: str | None = None, secret: bytes = b"secret") -> str:
    return str(TenantPrefixes(secret, shared=False).salted({SALT: asked}, tenant)[SALT])


@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), st.none() | st.text(min_size=1, max_size=4)), min_size=2, unique=True))
def test_no_two_tenants_or_salts_meet(asked: list[tuple[str, str | None]]) -> None:
    for one, other in pairwise(asked):
        assert salt(*one) != salt(*other)


def test_every_ingress_salts_alike_and_nobody_without_the_secret() -> None:
    assert salt("me") == salt("me")
    assert salt("me") != salt("me", secret=b"guess")
    assert "me" not in salt("me", "me")


def test_where_there_are_no_tenants_only_a_salt_divides() -> None:
    assert PREFIXES.salted({"prompt": "x"}, "") == {"prompt": "x"}
    assert PREFIXES.salted({SALT: "mine"}, "")[SALT] not in ("mine", salt("a", "mine"))


@pytest.mark.parametrize("wrong", ["", 5, ["a"]])
def test_what_is_no_salt_is_left_for_the_engine_to_refuse(wrong: object) -> None:
    assert PREFIXES.salted({SALT: wrong}, "me") == {SALT: wrong}


def test_tenants_share_on_purpose() -> None:
    assert TenantPrefixes(b"secret", shared=True).salted({"prompt": "x", SALT: "mine"}, "me") == {"prompt": "x", SALT: "mine"}
