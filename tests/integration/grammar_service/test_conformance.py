"""What the conformance command counts, and how."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from grammar_service.conformance import run_conformance
from grammar_service.conformance.isolation import in_child
from grammar_service.conformance.suite import read_suite
from grammar_service.conformance.verdict import Outcome, Reason
from grammar_service.errors import CompileFailed, CompileTimeout, UnusableFile
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

SUITE = "MASKCAST_JSON_SCHEMA_SUITE"
"""Names a folder of the official suite's files, `…/tests/draft2020-12`."""


def group(schema: Any, *tests: tuple[Any, bool]) -> dict[str, Any]:
    listed = [{"description": json.dumps(data), "data": data, "valid": valid} for data, valid in tests]
    return {"description": json.dumps(schema), "schema": schema, "tests": listed}


FILES: dict[str, list[dict[str, Any]]] = {
    "minimum": [group({"minimum": 3}, (3, True), (3.5, True), (2, False), ("a", True))],
    "properties": [
        group({"properties": {"a": {"type": "integer"}, "b": {}}}, ({"a": 1, "b": 2}, True), ({"b": 2, "a": 1}, True), ({"a": "x"}, False))
    ],
    "contains": [group({"contains": {"const": 1}, "uniqueItems": True}, ([1], True), ([2], False), ("a", True))],
    "format": [group({"format": "date"}, ("2024-02-29", True), ("tomorrow", True), (3, True))],
    "maxLength": [group({"maxLength": 1}, ("é", True), ("ab", False))],
    "multipleOf": [group({"multipleOf": 1.5}, (4.5, True), (-4.5, True), (1, False))],
    "not": [group({"not": {"type": ["string", "number"]}}, (True, True), ("a", False), (1, False))],
    "allOf": [group({"allOf": [{"maximum": 3}, {"minimum": 1}]}, (2, True), (4, False), (0, False))],
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for keyword, groups in FILES.items():
        (tmp_path / f"{keyword}.json").write_text(json.dumps(groups), encoding="utf-8")
    return tmp_path


def test_every_case_is_counted_once_for_each_way(suite: Path, tokenizer: GrammarTokenizer) -> None:
    seen: list[tuple[int, int]] = []
    report = run_conformance(suite, tokenizer, lambda done, total: seen.append((done, total)))
    assert seen == [(index, len(FILES)) for index in range(1, len(FILES) + 1)]
    cases = sum(len(group["tests"]) for groups in FILES.values() for group in groups)
    assert {name: tally.total for name, tally in report.totals.items()} == dict.fromkeys(
        ("maskcast", "maskcast, closed", "maskcast, any order", "xgrammar alone", "llguidance alone"), cases
    )
    assert sum(row.tally.total for row in report.rows) == cases


def test_deviations_are_told_with_their_reasons(suite: Path, tokenizer: GrammarTokenizer) -> None:
    report = run_conformance(suite, tokenizer, formats=True)
    assert report.of(Outcome.UNDER) == () == report.unexplained
    assert {(deviation.keyword, deviation.reason) for deviation in report.of(Outcome.OVER)} == {
        ("properties", Reason.ORDER),
        ("format", Reason.FORMAT),
        ("maxLength", Reason.SPELLING),
        ("multipleOf", Reason.SIGN),
    }
    refused = {row.keyword: row.tally.counts[Outcome.REFUSED] for row in report.rows if row.refused_schemas}
    assert refused == {"contains": 3}
    assert [count for _, count in report.refusals] == [1]


def test_a_library_alone_is_seen_to_accept_what_is_invalid(suite: Path, tokenizer: GrammarTokenizer) -> None:
    totals = run_conformance(suite, tokenizer).totals
    assert totals["xgrammar alone"].counts[Outcome.UNDER] > 0
    assert totals["maskcast"].counts[Outcome.CORRECT] > totals["xgrammar alone"].counts[Outcome.CORRECT]
    assert totals["maskcast"].counts[Outcome.CORRECT] > totals["llguidance alone"].counts[Outcome.CORRECT]


def test_plain_schemas_are_read_from_folders_below(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "person.json").write_text('{"type": "object"}', encoding="utf-8")
    (tmp_path / "a" / "tested.json").write_text(json.dumps(group({"type": "null"}, (None, True))), encoding="utf-8")
    groups = {group.keyword: (group.schema, len(group.cases)) for group in read_suite(tmp_path)}
    assert groups == {"person": ({"type": "object"}, 0), "tested": ({"type": "null"}, 1)}


def test_schemas_of_a_draft_are_read_from_its_folder_and_of_its_dialect(tmp_path: Path) -> None:
    (tmp_path / "draft4").mkdir()
    schemas: list[Any] = [{"type": "null"}, {"$schema": "other"}, True]
    (tmp_path / "draft4" / "type.json").write_text(json.dumps([group(schema) for schema in schemas]), encoding="utf-8")
    draft4 = "http://json-schema.org/draft-04/schema#"
    expected = [{"$schema": draft4, "type": "null"}, {"$schema": "other"}, True]
    assert [group.schema for group in read_suite(tmp_path, "draft4")] == expected
    assert [group.schema for group in read_suite(tmp_path / "draft4", "draft4")] == expected
    with pytest.raises(UnusableFile, match="draft2019-09"):
        read_suite(tmp_path, "draft5")


def test_a_folder_without_schemas_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile):
        read_suite(tmp_path)
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(UnusableFile):
        read_suite(tmp_path)


def test_a_child_that_dies_or_hangs_is_an_error_of_the_grammar() -> None:
    assert in_child(lambda: [1, 2], list, 10.0) == [1, 2]
    with pytest.raises(CompileFailed):
        in_child(_die, list, 10.0)
    with pytest.raises(CompileTimeout):
        in_child(_for_ever, list, 0.05)


def _die() -> list[int]:
    os._exit(3)


def _for_ever() -> list[int]:
    while True:
        pass


@pytest.mark.skipif(SUITE not in os.environ, reason=f"{SUITE} names no folder")
def test_the_official_suite_finds_nothing_invalid_accepted(tokenizer: GrammarTokenizer) -> None:
    report = run_conformance(Path(os.environ[SUITE]), tokenizer)
    assert report.of(Outcome.UNDER) == () == report.unexplained
    correct = {name: tally.counts[Outcome.CORRECT] for name, tally in report.totals.items()}
    assert correct["maskcast"] > max(correct["xgrammar alone"], correct["llguidance alone"])
