from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deployments.access.api_keys import ApiKeys
from deployments.access.caller import Scope
from deployments.commands.cli import app, main
from deployments.errors import SettingsError, StartError, StatusError

NOBODY = "http://127.0.0.1:1"


def test_help_names_the_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "serve" in result.output
    assert "status" in result.output


def test_help_does_not_wait_for_ray_or_vllm() -> None:
    heavy = (
        "import deployments.commands.cli, sys; print([name for name in ('ray', 'vllm', 'torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_taken_port_stops_the_start_before_anything_runs() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = CliRunner().invoke(app, ["serve", "embedded", "--once", "--port", str(taken.getsockname()[1])])
    assert isinstance(result.exception, StartError)


def test_a_wrong_setting_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("model: {replicas: 2}\n")
    result = CliRunner().invoke(app, ["serve", "--config", str(file)])
    assert isinstance(result.exception, SettingsError)


@pytest.mark.parametrize("content", [None, "- {name: a, sha256: not a digest}"])
def test_a_wrong_key_file_stops_the_start(content: str | None, tmp_path: Path) -> None:
    keys, file = tmp_path / "keys.yaml", tmp_path / "settings.yaml"
    if content:
        keys.write_text(content)
    file.write_text(f"http: {{api_keys_file: {keys}}}\n")
    result = CliRunner().invoke(app, ["serve", "--config", str(file)])
    assert isinstance(result.exception, SettingsError)
    assert "api_keys_file" in str(result.exception)


def test_a_new_key_is_shown_once_and_its_entry_does_not_tell_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["key", "billing", "--scope", "generate", "--scope", "metrics", "--weight", "2"])
    assert result.exit_code == 0
    made = result.stderr.splitlines()[0]
    assert made not in result.stdout
    file = tmp_path / "keys.yaml"
    file.write_text(result.stdout)
    caller = ApiKeys([], file).check(f"Bearer {made}")
    assert (caller.name, caller.weight) == ("billing", 2.0)
    assert caller.scopes == frozenset({Scope.GENERATE, Scope.METRICS})


def test_a_key_for_an_unknown_scope_is_refused() -> None:
    result = CliRunner().invoke(app, ["key", "billing", "--scope", "everything"])
    assert isinstance(result.exception, SettingsError)
    assert not result.stdout


def test_status_of_nothing_is_an_error() -> None:
    result = CliRunner().invoke(app, ["status", "--url", NOBODY])
    assert isinstance(result.exception, StatusError)


def test_an_error_of_ours_is_one_sentence_and_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["maskcast", "status", "--url", NOBODY])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("maskcast: nothing answers at http://127.0.0.1:1")
