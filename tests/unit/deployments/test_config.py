from __future__ import annotations

from pathlib import Path

import pytest

from deployments.config import load_settings, parse_settings
from deployments.errors import SettingsError


def test_every_setting_has_a_default() -> None:
    settings = load_settings(environment={})
    assert settings.model.path == "embedded"
    assert settings.redis.url is None


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("model: {num_replicas: 2, dtype: float32}\nhttp: {port: 9000}\n")
    settings = load_settings(file, {"MASKCAST_MODEL__NUM_REPLICAS": "3", "UNRELATED": "1"})
    assert (settings.model.num_replicas, settings.model.dtype, settings.http.port) == (3, "float32", 9000)


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("")
    assert load_settings(file, {}) == load_settings(environment={})


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"model": {"num_replica": 1}}, "model.num_replica"),
        ({"http": {"port": 70000}}, "http.port"),
        ({"modle": {}}, "modle"),
        ({"grammar": {"compile_deadline_s": "soon"}}, "grammar.compile_deadline_s"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tree: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        parse_settings(tree)


def test_an_unknown_variable_of_ours_is_refused() -> None:
    with pytest.raises(SettingsError, match="colour"):
        load_settings(environment={"MASKCAST_COLOUR": "blue"})


@pytest.mark.parametrize("content", ["- a\n- b\n", "a: [1", "\x00"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(content)
    with pytest.raises(SettingsError, match=r"settings\.yaml"):
        load_settings(file, {})


def test_a_file_that_is_spoilt_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("http: {}\nartifact_secret: [swordfish\n")
    with pytest.raises(SettingsError, match="line 3") as caught:
        load_settings(file, {})
    assert "swordfish" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.yaml"):
        load_settings(tmp_path / "nowhere.yaml", {})


def test_secrets_are_not_printed() -> None:
    secret = "hunter2" * 5
    settings = parse_settings({"redis": {"password": secret}, "http": {"api_keys": [secret]}, "artifact_secret": secret})
    assert secret not in repr(settings)


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"http": {"api_keys": [""]}}, r"http\.api_keys\.0.* 16 "),
        ({"http": {"api_keys": ["long-enough-to-be-a-key", "swordfish"]}}, r"http\.api_keys\.1.* 16 "),
        ({"http": {"api_keys": [" " * 20]}}, r"http\.api_keys\.0.* 16 "),
        ({"artifact_secret": "s"}, r"artifact_secret.* 32 "),
        ({"artifact_secret": "swordfish" * 3}, r"artifact_secret.* 32 "),
    ],
)
def test_a_secret_that_can_be_guessed_is_refused_and_not_repeated(tree: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError, match=named) as caught:
        parse_settings(tree)
    assert "swordfish" not in str(caught.value)


ADAPTERS = [{"name": "a", "path": "/one"}, {"name": "b", "path": "/two"}]


@pytest.mark.parametrize("modules", [["a=/one", '{"name": "b", "path": "/two"}'], ADAPTERS])
def test_adapters_are_served_by_their_names(modules: list[object]) -> None:
    model = parse_settings({"model": {"served_name": "base", "engine_args": {"enable_lora": True, "lora_modules": modules}}}).model
    assert model.served_names == ("base", "a", "b")
