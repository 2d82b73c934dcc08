from __future__ import annotations

import json
from pathlib import Path

import pytest

from grammar_service.errors import UnusableFile
from grammar_service.spec import GrammarKind
from grammar_service.spec_file import kind_of, read_spec
from load_tests.corpus.cases import read_cases


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.json", '{"type": "string"}', GrammarKind.JSON_SCHEMA),
        ("a.json", "true", GrammarKind.JSON_SCHEMA),
        ("a.json", "{", GrammarKind.JSON_SCHEMA),
        ("a.json", '{"type": "structural_tag", "format": {}}', GrammarKind.STRUCTURAL_TAG),
        ("a.json", '{"structures": [], "triggers": []}', GrammarKind.STRUCTURAL_TAG),
        ("a.json", '{"properties": {"structures": {}}}', GrammarKind.JSON_SCHEMA),
        ("a.json", '["yes", "no"]', GrammarKind.CHOICE),
        ("a.lark", "start: /a/", GrammarKind.LARK),
        ("a.ebnf", 'root ::= "a"', GrammarKind.EBNF),
        ("a.gbnf", 'root ::= "a"', GrammarKind.EBNF),
        ("a.regex", "a+", GrammarKind.REGEX),
        ("a.txt", "a+", GrammarKind.REGEX),
    ],
)
def test_suffix_and_text_suggest_the_kind(name: str, text: str, kind: GrammarKind) -> None:
    assert kind_of(Path(name), text) is kind


def test_another_suffix_needs_a_named_kind(tmp_path: Path) -> None:
    file = tmp_path / "grammar.md"
    file.write_text("a+\n", encoding="utf-8")
    with pytest.raises(UnusableFile, match="--kind"):
        read_spec(file)
    assert read_spec(file, GrammarKind.REGEX).text == "a+"


def test_bytes_that_are_no_text_are_an_unusable_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe")
    with pytest.raises(UnusableFile, match=r"a\.json"):
        read_spec(tmp_path / "a.json")


def test_cases_are_the_grammars_of_a_folder_by_name(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "b.regex").write_text("b\n", encoding="utf-8")
    (tmp_path / "inner" / "a.json").write_text("{}", encoding="utf-8")
    (tmp_path / "README.md").write_text("no grammar", encoding="utf-8")
    assert [case.name for case in read_cases(tmp_path)] == ["b.regex", "inner/a.json"]


def test_a_file_of_the_official_suite_is_one_case_a_schema(tmp_path: Path) -> None:
    groups = [{"schema": {"type": "null"}, "tests": []}, {"schema": True, "tests": []}]
    (tmp_path / "type.json").write_text(json.dumps(groups), encoding="utf-8")
    cases = read_cases(tmp_path)
    assert [(case.name, case.spec.text) for case in cases] == [("type.json#0", '{"type": "null"}'), ("type.json#1", "true")]
    assert not any(case.spec.closed for case in cases)


def test_a_folder_without_grammars_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match="no grammar"):
        read_cases(tmp_path)
    with pytest.raises(UnusableFile, match="not a folder"):
        read_cases(tmp_path / "missing")
