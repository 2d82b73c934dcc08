from __future__ import annotations

import pytest

from deployments.api.api_keys import ApiKeys
from deployments.errors import ApiError

KEYS = ApiKeys(["first", "sécond"])


@pytest.mark.parametrize("header", ["Bearer first", "bearer first", "Bearer sécond"])
def test_a_right_key_passes(header: str) -> None:
    KEYS.check(header)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic first", "first", "Bearer first second"])
def test_anything_else_is_a_401(header: str | None) -> None:
    with pytest.raises(ApiError) as caught:
        KEYS.check(header)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer  ", "bearer\t"])
def test_no_token_is_never_a_key(header: str) -> None:
    with pytest.raises(ApiError):
        ApiKeys([""]).check(header)


def test_without_keys_everybody_passes_as_one_tenant() -> None:
    assert ApiKeys([]).check(None) == ApiKeys([]).check("Bearer any") == ""


def test_each_key_is_a_tenant_whose_name_does_not_tell_the_key() -> None:
    first, second = KEYS.check("Bearer first"), KEYS.check("Bearer sécond")
    assert first == KEYS.check("bearer first ") != second
    assert "first" not in first
