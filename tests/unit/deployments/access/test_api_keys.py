"""Keys of the settings and of a file: who calls, what he may, and that the file is read anew."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
import yaml

from deployments.access.api_keys import ApiKeys
from deployments.access.caller import Scope
from deployments.access.key_file import digest_of, entry_text, new_key, read_keys
from deployments.access.request_bounds import RequestBounds
from deployments.config import KeyLimits, LimitSettings
from deployments.errors import ApiError, SettingsError

KEYS = ApiKeys(["first", "sécond"])
FIRST, SECOND = new_key(), new_key()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def write(file: Path, *entries: dict[str, object]) -> None:
    """In a file of its own that takes the place of the earlier one, as mounted secrets are swapped."""
    fresh = file.with_suffix(".new")
    fresh.write_text(yaml.safe_dump(list(entries)))
    fresh.replace(file)


def entry(name: str, key: str, **more: object) -> dict[str, object]:
    return {"name": name, "sha256": digest_of(key), **more}


def refused(keys: ApiKeys, header: str | None) -> ApiError:
    with pytest.raises(ApiError) as caught:
        keys.check(header)
    return caught.value


@pytest.mark.parametrize("header", ["Bearer first", "bearer first", "Bearer sécond"])
def test_a_right_key_passes(header: str) -> None:
    KEYS.check(header)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic first", "first", "Bearer first second"])
def test_anything_else_is_a_401(header: str | None) -> None:
    error = refused(KEYS, header)
    assert (error.status, error.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer  ", "bearer\t"])
def test_no_token_is_never_a_key(header: str) -> None:
    assert refused(ApiKeys([""]), header).status == 401


def test_without_keys_everybody_passes_as_one_tenant_who_may_all() -> None:
    caller = ApiKeys([]).check(None)
    assert caller == ApiKeys([]).check("Bearer any")
    assert caller.name == ""
    assert all(caller.may(scope) for scope in Scope)


def test_each_key_is_a_tenant_whose_name_does_not_tell_the_key() -> None:
    first, second = KEYS.check("Bearer first"), KEYS.check("Bearer sécond")
    assert first.name == KEYS.check("bearer first ").name != second.name
    assert "first" not in first.name
    assert not first.may(Scope.ADMIN)


def test_an_entry_gives_its_tenant_name_scopes_limits_and_weight(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    limits = {"requests_per_minute": 7}
    write(file, entry("billing", FIRST, scopes=["generate", "metrics"], weight=2, limits=limits))
    caller = ApiKeys([], file, KeyLimits(requests_per_minute=60, tokens_per_minute=100)).check(f"Bearer {FIRST}")
    assert (caller.name, caller.weight) == ("billing", 2.0)
    assert caller.limits == KeyLimits(requests_per_minute=7, tokens_per_minute=100)
    assert caller.may(Scope.METRICS)
    with pytest.raises(ApiError) as caught:
        caller.require(Scope.GRAMMARS_WRITE)
    assert (caught.value.status, caught.value.code) == (403, "insufficient_scope")


def test_an_entry_bounds_single_requests_and_never_beyond_what_all_may(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    limits = {"requests_per_minute": 7, "max_sequences": 2, "max_tokens": 50, "max_tools": 1000, "request_timeout_s": 1.5}
    write(file, entry("small", FIRST, limits=limits), entry("usual", SECOND))
    keys, anybodys = ApiKeys([], file), LimitSettings()
    own = keys.check(f"Bearer {FIRST}").bounds.within(anybodys)
    assert own == anybodys.model_copy(update={"max_sequences": 2, "max_tokens": 50, "request_timeout_s": 1.5})
    assert keys.check(f"Bearer {FIRST}").limits == KeyLimits(requests_per_minute=7)
    assert keys.check(f"Bearer {SECOND}").bounds.within(anybodys) is anybodys


def test_every_bound_of_a_key_is_one_of_requests() -> None:
    assert set(RequestBounds.model_fields) <= set(LimitSettings.model_fields)


def test_no_key_of_the_settings_goes_before_others() -> None:
    assert not KEYS.check("Bearer first").may(Scope.PRIORITY)


def test_two_digests_are_one_tenant_while_its_key_changes(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    write(file, {"name": "billing", "sha256": [digest_of(FIRST), digest_of(SECOND)]})
    keys = ApiKeys([], file)
    assert keys.check(f"Bearer {FIRST}") == keys.check(f"Bearer {SECOND}")


def test_an_admin_may_all(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    write(file, entry("root", FIRST, scopes=["admin"]))
    assert all(ApiKeys([], file).check(f"Bearer {FIRST}").may(scope) for scope in Scope)


def test_a_file_without_keys_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("[]")
    assert refused(ApiKeys([], file), None).status == 401
    assert refused(ApiKeys([], file), "Bearer ").status == 401


def test_a_changed_file_counts_within_a_second_and_is_not_looked_at_more_often(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, clock = tmp_path / "keys.yaml", Clock()
    write(file, entry("a", FIRST))
    keys = ApiKeys(["plain-key-of-the-settings"], file, clock=clock)
    write(file, entry("b", SECOND))
    clock.now = 0.9
    assert keys.check(f"Bearer {FIRST}").name == "a"
    clock.now = 1.0
    with caplog.at_level(logging.INFO):
        assert refused(keys, f"Bearer {FIRST}").status == 401
    assert keys.check(f"Bearer {SECOND}").name == "b"
    assert keys.check("Bearer plain-key-of-the-settings").name.startswith("key-")
    assert "b" in caplog.text
    assert SECOND not in caplog.text
    assert digest_of(SECOND) not in caplog.text


@pytest.mark.parametrize("spoilt", ["- name: a\n  sha256: {key}\n", "{key}: [", "gone"])
def test_a_file_that_is_spoilt_leaves_the_keys_and_its_content_untold(
    spoilt: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, clock = tmp_path / "keys.yaml", Clock()
    write(file, entry("a", FIRST))
    keys = ApiKeys([], file, clock=clock)
    if spoilt == "gone":
        file.unlink()
    else:
        file.write_text(spoilt.replace("{key}", SECOND))
    for now in (1.0, 2.0, 3.0):
        clock.now = now
        assert keys.check(f"Bearer {FIRST}").name == "a"
    assert len(caplog.records) == 1
    assert SECOND not in caplog.text
    write(file, entry("b", SECOND))
    clock.now = 4.0
    assert keys.check(f"Bearer {SECOND}").name == "b"


def test_a_file_of_the_same_length_and_age_is_seen_by_its_inode(tmp_path: Path) -> None:
    file, clock = tmp_path / "keys.yaml", Clock()
    write(file, entry("a", FIRST))
    os.utime(file, ns=(1, 1))
    keys = ApiKeys([], file, clock=clock)
    held = file.open()  # so that the new file cannot get the old one's inode
    write(file, entry("a", SECOND))
    os.utime(file, ns=(1, 1))
    clock.now = 1.0
    assert keys.check(f"Bearer {SECOND}").name == "a"
    held.close()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("- {name: a, sha256: swordfish}", r"0\.sha256"),
        ("- {name: a b, sha256: FIRST}", r"0\.name"),
        ("- {name: a, sha256: []}", r"0\.sha256"),
        ("- {name: a, sha256: FIRST, swordfish: 1}", "unknown field"),
        ("- {name: a, sha256: FIRST, scopes: [everything]}", r"0\.scopes\.0"),
        ("- {name: a, sha256: FIRST, weight: 0}", r"0\.weight"),
        ("- {name: a, sha256: FIRST, limits: {requests_per_minute: 0}}", "requests_per_minute"),
        ("- {name: a, sha256: FIRST}\n- {name: a, sha256: SECOND}", "same name"),
        ("- {name: a, sha256: FIRST}\n- {name: b, sha256: FIRST}", "digest"),
        ("swordfish: [", "line"),
        ("swordfish", "all"),
        ("\udcff", "UTF-8"),
    ],
)
def test_a_wrong_file_is_refused_by_its_place_and_never_repeated(content: str, named: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    written = content.replace("FIRST", digest_of(FIRST)).replace("SECOND", digest_of(SECOND))
    file.write_bytes(written.encode("utf-8", "surrogateescape"))
    with pytest.raises(SettingsError, match=named) as caught:
        read_keys(file)
    assert "swordfish" not in str(caught.value)
    assert "keys.yaml" in str(caught.value)


def test_what_the_command_prints_is_what_the_file_takes(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(entry_text(FIRST, "a", [Scope.GENERATE], 1) + entry_text(SECOND, "b", [Scope.GENERATE, Scope.ADMIN], 2.5))
    assert [(found.name, found.weight, found.scopes[-1]) for found in read_keys(file)] == [
        ("a", 1.0, Scope.GENERATE),
        ("b", 2.5, Scope.ADMIN),
    ]
    assert ApiKeys([], file).check(f"Bearer {SECOND}").name == "b"
    assert SECOND not in file.read_text()
    assert FIRST != SECOND
    with pytest.raises(SettingsError, match="name"):
        entry_text(FIRST, "a b", [Scope.GENERATE], 1)
