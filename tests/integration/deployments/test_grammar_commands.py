from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deployments.commands.cli import app
from grammar_service.errors import UnsupportedGrammar

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}


def test_compile_tells_costs_sizes_and_the_forced_start(tmp_path: Path) -> None:
    file = tmp_path / "person.json"
    file.write_text(json.dumps(PERSON), encoding="utf-8")
    result = CliRunner().invoke(app, ["grammar", "compile", str(file)])
    assert result.exit_code == 0, result.exception
    # The title is wrapped where the path is long.
    assert "person.json on xgrammar" in " ".join(result.output.split())
    rows = dict(line.strip("│ ").split("│", 1) for line in result.output.splitlines() if line.count("│") == 3)
    shown = {name.strip(): value.strip() for name, value in rows.items()}
    assert shown["forced at the start"] == '{"name": "'
    assert shown["compiling"].endswith(" ms")
    assert shown["artifact"].endswith(" bytes")


def test_compile_raises_what_the_service_would_answer(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text('{"type": "array", "items": {"type": "number", "minimum": 3}, "uniqueItems": true}', encoding="utf-8")
    assert isinstance(CliRunner().invoke(app, ["grammar", "compile", str(file)]).exception, UnsupportedGrammar)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    group = {
        "description": "an integer",
        "schema": {"type": "integer"},
        "tests": [{"description": "is one", "data": 3, "valid": True}, {"description": "is none", "data": "3", "valid": False}],
    }
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "type.json").write_text(json.dumps([group]), encoding="utf-8")
    return tmp_path / "suite"


def test_conformance_shows_and_writes_outcomes_by_keyword(suite: Path, tmp_path: Path) -> None:
    output = tmp_path / "conformance.json"
    result = CliRunner().invoke(app, ["grammar", "conformance", str(suite), "--json", str(output)])
    assert result.exit_code == 0, result.exception
    assert "invalid instances accepted" in result.output
    report = json.loads(output.read_text(encoding="utf-8"))
    assert list(report) == ["command", "machine", "versions", "targets", "rows", "commit", "day"]
    (row,) = [row for row in report["rows"] if row.get("keyword") == "type"]
    assert (row["schemas"], row["cases"], row["correct"]) == (1, 2, 2)
    assert report["targets"][0]["holds"]


def test_conformance_tells_of_each_draft(suite: Path, tmp_path: Path) -> None:
    output = tmp_path / "conformance.json"
    drafts = ["--draft", "draft4", "--draft", "draft7"]
    result = CliRunner().invoke(app, ["grammar", "conformance", str(suite), *drafts, "--json", str(output)])
    assert result.exit_code == 0, result.exception
    report = json.loads(output.read_text(encoding="utf-8"))
    assert [row["draft"] for row in report["rows"] if row.get("keyword") == "type"] == ["draft4", "draft7"]
    assert [target["name"].partition(":")[0] for target in report["targets"]] == ["draft4"] * 4 + ["draft7"] * 4
