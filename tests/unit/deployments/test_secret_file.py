"""Secrets that settings refer to: they travel in no pickle, and only this user can read their file."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path

import pytest

from deployments.config import Settings, load_settings, parse_settings
from deployments.errors import SettingsError

SECRETS = ("the-password-of-redis-0123456789", "the-key-of-a-client-0123456789", "the-secret-of-artifacts-0123456789")
TREE = {
    "model": {"num_replicas": 3},
    "redis": {"url": "redis://somewhere:1/0", "password": SECRETS[0]},
    "http": {"api_keys": [SECRETS[1]], "port": 9000},
    "artifact_secret": SECRETS[2],
}


def travelled(settings: Settings) -> Settings:
    arrived: Settings = pickle.loads(pickle.dumps(settings))
    return arrived


def test_secrets_in_a_file_do_not_travel_and_arrive_all_the_same(tmp_path: Path) -> None:
    settings = parse_settings(TREE).with_secrets_in(tmp_path / "secrets.yaml")
    sent = pickle.dumps(settings)
    assert not [secret for secret in SECRETS if secret.encode() in sent]
    assert travelled(settings) == settings
    assert travelled(travelled(settings)).artifact_secret.get_secret_value() == SECRETS[2]
    assert settings.http.port == 9000


def test_the_file_is_readable_by_this_user_alone_and_is_never_one_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "secrets.yaml"
    parse_settings(TREE).with_secrets_in(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        parse_settings(TREE).with_secrets_in(file)


def test_without_a_file_settings_travel_whole() -> None:
    assert travelled(parse_settings(TREE)) == parse_settings(TREE)
    assert travelled(Settings()) == Settings()


def test_what_is_said_elsewhere_counts_and_travels(tmp_path: Path) -> None:
    file = tmp_path / "secrets.yaml"
    file.write_text(f"artifact_secret: {SECRETS[2]}\nredis: {{password: {SECRETS[0]}}}\n")
    said = {
        "MASKCAST_SECRETS_FILE": str(file),
        "MASKCAST_REDIS__PASSWORD": "said-elsewhere",
        "MASKCAST_REDIS__URL": "redis://somewhere:1/0",
    }
    settings = load_settings(environment=said)
    assert settings.redis.password
    assert settings.redis.password.get_secret_value() == "said-elsewhere"
    assert settings.artifact_secret.get_secret_value() == SECRETS[2]
    assert travelled(settings) == settings
    assert SECRETS[2].encode() not in pickle.dumps(settings)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.yaml"):
        parse_settings({"secrets_file": "/nowhere.yaml"})
