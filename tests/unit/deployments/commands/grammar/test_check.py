from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deployments.commands.cli import app
from grammar_service.errors import UnusableFile


def check(file: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["grammar", "check", str(file), *options])


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"type": "object", "properties": {"mail": {"type": "string", "format": "email"}}}), encoding="utf-8")
    return file


def test_a_served_constraint_names_its_backend_and_what_the_other_would_weaken(schema: Path) -> None:
    result = check(schema)
    assert result.exit_code == 0
    assert "served by llguidance" in result.output
    assert "  /properties/mail/format  format 'email' is not enforced\n" in result.output


def test_a_refused_constraint_has_exit_code_1_and_all_places(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"type": "array", "items": {"type": "number", "minimum": 3}, "uniqueItems": True}), encoding="utf-8")
    result = check(file)
    assert result.exit_code == 1
    assert result.output.count("/uniqueItems") == 3, "each backend, and what `unenforceable: check` leaves out"
    assert "unenforceable: check" in result.output
    assert "refused: no backend enforces all of it" in result.output


def test_what_is_no_schema_is_refused_at_its_place(tmp_path: Path) -> None:
    file = tmp_path / "typo.json"
    file.write_text('{"type": "strin"}', encoding="utf-8")
    result = check(file)
    assert result.exit_code == 1
    assert "refused at /type: " in result.output


def test_whitespace_decides_the_backend(tmp_path: Path) -> None:
    file = tmp_path / "plain.json"
    file.write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}', encoding="utf-8")
    assert "served by xgrammar" in check(file).output
    assert "served by llguidance" in check(file, "--whitespace", "compact").output


def test_a_kind_that_cannot_be_guessed_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "grammar.md"
    file.write_text("[a-z]+", encoding="utf-8")
    assert isinstance(check(file).exception, UnusableFile)
    assert "regex, 6 characters" in check(file, "--kind", "regex").output


def test_long_pointers_are_never_broken(tmp_path: Path) -> None:
    inner: dict[str, object] = {"type": "string", "format": "email"}
    for _ in range(8):
        inner = {"type": "object", "properties": {"a_rather_long_name": inner}}
    file = tmp_path / "deep.json"
    file.write_text(json.dumps(inner), encoding="utf-8")
    assert f"  {'/properties/a_rather_long_name' * 8}/format  format 'email'" in check(file).output


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    assert check(tmp_path / "missing.json").exit_code == 2
