"""A model and vLLM's arguments, as they stand after `maskcast serve`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from rich.console import Console

from deployments.commands.engine_flags import as_settings, read_engine_flags
from deployments.commands.serve_settings import as_yaml, read_settings
from deployments.config import parse_settings
from deployments.errors import SettingsError
from deployments.local.progress import Progress


def test_a_name_alone_is_a_model() -> None:
    assert read_engine_flags([]) == {}
    assert read_engine_flags(["Qwen/Qwen3-8B"]) == {"model": {"path": "Qwen/Qwen3-8B"}}


def test_a_folder_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_engine_flags(["model"]) == {"model": {"path": str(tmp_path / "model")}}


def test_arguments_are_settings_where_there_is_one_and_the_engines_otherwise() -> None:
    given = {"model_tag": "a/b", "served_model_name": ["c"], "max_model_len": 4096, "api_key": ["k" * 16], "enable_lora": True, "seed": 1}
    assert as_settings(given) == {
        "model": {"path": "a/b", "served_name": "c", "max_model_len": 4096, "engine_args": {"enable_lora": True, "seed": 1}},
        "http": {"api_keys": ["k" * 16]},
    }
    assert as_settings({"max_model_len": -1}) == {}


def test_those_of_vllms_own_server_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"--ssl-keyfile is for vLLM's own HTTP server"):
        as_settings({"ssl_keyfile": "a"})


def test_a_wrong_one_is_vllms_word_and_a_guess() -> None:
    with pytest.raises(SettingsError, match=r"no argument --tensor-paralel-size; did you mean --tensor-parallel-size\?"):
        read_engine_flags(["embedded", "--tensor-paralel-size", "2"])


def test_settings_that_are_written_are_read_again_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKCAST_ARTIFACT_SECRET", "s" * 32)
    file = tmp_path / "settings.yaml"
    file.write_text("model: {rewards: {brief: {import_path: 'a:b', args: {c: 1}}}, lookahead: true}\nhttp: {port: 81}\n")
    given = {"http": {"port": 80}, "model": {"num_replicas": 2, "gpus_per_worker": None}}
    found = read_settings(file, ["embedded"], given, Progress(Console(stderr=True)))
    text = as_yaml(found)
    assert "s" * 32 not in text
    assert "# model.gpus_per_worker 0: there is no GPU here\n" in text or "GPU" in text
    again = parse_settings({**yaml.safe_load(text), "artifact_secret": "s" * 32})
    assert again == found.settings
    assert (again.http.port, again.model.num_replicas) == (80, 2)
