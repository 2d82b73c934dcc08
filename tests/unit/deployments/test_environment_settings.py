"""Secrets are taken as they stand, and no error repeats a value."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deployments.access.key_file import read_keys
from deployments.config import Settings, load_settings, parse_settings
from deployments.errors import SettingsError

REST = "-and-as-much-more-as-a-secret-needs"
AWKWARD = [
    *("@home", "*star", "%percent", "#hash", "[bracket", "{brace", "&anchor", "!tag", "|bar", ">fold", "'quote", '"double', "`tick"),
    *("0755", "0x1f", "1e3", "null", "~", "yes", "2026-11-26", "a: b", "pass #word", "- item", "\\n", "ends ", " begins", "ключ", "🔑"),
    "long" * 1024,
]


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("secret", AWKWARD)
def test_a_secret_of_the_environment_is_the_one_that_was_set(secret: str, tmp_path: Path) -> None:
    long = secret + REST
    environment = {"MASKCAST_REDIS__PASSWORD": secret, "MASKCAST_ARTIFACT_SECRET": long, "MASKCAST_HTTP__API_KEYS": long}
    settings = load_settings(environment=environment)
    assert settings.redis.password is not None
    assert settings.redis.password.get_secret_value() == secret
    assert settings.artifact_secret.get_secret_value() == long
    assert [key.get_secret_value() for key in settings.http.api_keys] == [long]
    for again in (pickle.loads(pickle.dumps(settings)), pickle.loads(pickle.dumps(settings.with_secrets_in(tmp_path / "secrets.yaml")))):
        assert again.redis.password == settings.redis.password
        assert again.http.api_keys == settings.http.api_keys


@pytest.mark.parametrize("secret", AWKWARD)
def test_a_secret_of_a_file_is_its_text_but_for_the_last_line_feed(secret: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(f"{secret}\n".encode())
    settings = load_settings(environment={"MASKCAST_REDIS__PASSWORD_FILE": str(tmp_path / "password")})
    assert settings.redis.password is not None
    assert settings.redis.password.get_secret_value() == secret


@given(st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_any_text_may_be_a_password(secret: str) -> None:
    found = load_settings(environment={"MASKCAST_REDIS__PASSWORD": secret}).redis.password
    assert found is not None
    assert found.get_secret_value() == secret


def test_several_keys_are_an_array() -> None:
    keys = load_settings(environment={"MASKCAST_HTTP__API_KEYS": '["first-of-the-keys", "second-of-the-keys"]'}).http.api_keys
    assert [key.get_secret_value() for key in keys] == ["first-of-the-keys", "second-of-the-keys"]


@pytest.mark.parametrize("value", ["0755", "null", "", "yes", "1.5", "2026-11-26"])
@pytest.mark.parametrize("name", ["redis", "artifact"])
def test_a_secret_of_a_settings_file_that_is_no_text_is_to_be_quoted(name: str, value: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"redis: {{password: {value}}}\n" if name == "redis" else f"artifact_secret: {value}\n")
    with pytest.raises(SettingsError, match="quotes") as caught:
        load_settings(file, {})
    assert not value or value not in told(caught.value)
    file.write_text(yaml.safe_dump({"redis": {"password": value or "x"}}))
    assert load_settings(file, {}).redis.password is not None


@pytest.mark.parametrize(
    "environment",
    [
        {"MASKCAST_MODEL__PATH": "[swordfish"},
        {"MASKCAST_MODEL__PATH": "*swordfish"},
        {"MASKCAST_MODEL__PATH": "!!python/name:swordfish"},
        {"MASKCAST_MODEL__PATH": "2026-99-99"},
        {"MASKCAST_MODEL__PATH": "[" * 100_000},
        {"MASKCAST_ARTIFACT_SECRET": "swordfish"},
        {"MASKCAST_HTTP__API_KEYS": "swordfish"},
        {"MASKCAST_HTTP__PORT": "swordfish"},
        {"MASKCAST_REDIS__URL": "redis://:swordfish@127.0.0.1:6379"},
        {"MASKCAST_REDIS__PASSWORD_FILE": "/nowhere"},
        {"MASKCAST_REDIS__PASSWORD": "swordfish", "MASKCAST_REDIS__PASSWORD_FILE": "/nowhere"},
        {"MASKCAST_REDIS__PASSWORT": "swordfish"},
        {"MASKCAST_REDIS": "swordfish", "MASKCAST_REDIS__PASSWORD": "swordfish"},
    ],
)
def test_no_error_repeats_a_value(environment: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(environment=environment)
    assert "swordfish" not in told(caught.value)
    assert len(told(caught.value)) < 5000


def test_a_file_of_a_secret_that_is_no_text_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"swordfish\xff")
    with pytest.raises(SettingsError, match="UTF-8") as caught:
        load_settings(environment={"MASKCAST_REDIS__PASSWORD_FILE": str(tmp_path / "password")})
    assert "swordfish" not in told(caught.value)


def test_settings_that_name_files_are_settings() -> None:
    tree = {"http": {"api_keys_file": "keys.yaml"}}
    assert load_settings(environment={"MASKCAST_HTTP__API_KEYS_FILE": "keys.yaml"}) == parse_settings(tree)
    assert Settings().http.api_keys_file is None


@pytest.mark.parametrize("content", ["", "\n", "# nobody yet\n", "null\n"])
def test_an_empty_key_file_is_no_key_file(content: str, tmp_path: Path) -> None:
    """A file that somebody truncated, or that is being written, must not lock everybody out."""
    file = tmp_path / "keys.yaml"
    file.write_text(content)
    with pytest.raises(SettingsError, match="is empty"):
        read_keys(file)
    file.write_text("[]\n")
    assert read_keys(file) == ()


@pytest.mark.parametrize("text", ["", " ", "\n", "# nothing"])
def test_an_empty_variable_turns_nothing_off(text: str) -> None:
    with pytest.raises(SettingsError, match="MASKCAST_HTTP__API_KEYS_FILE is empty"):
        load_settings(environment={"MASKCAST_HTTP__API_KEYS_FILE": text})
    assert load_settings(environment={"MASKCAST_HTTP__API_KEYS_FILE": "null"}).http.api_keys_file is None


def test_an_empty_name_of_a_key_file_is_no_name() -> None:
    with pytest.raises(SettingsError, match="api_keys_file"):
        parse_settings({"http": {"api_keys_file": ""}})
