"""A checkout of SchemaStore in small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grammar_service.conformance.collection import CHECKED, GRAMMARS, OURS, VALIDATOR, Findings, run_collection
from grammar_service.conformance.collection_report import Explanation, Otherwise, broken, causes, counts, how_served, otherwise, unserved
from grammar_service.conformance.isolation import in_children
from grammar_service.conformance.judging import Mark
from grammar_service.conformance.schemastore import Apart, is_schemastore
from grammar_service.errors import CompileFailed, CompileTimeout
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

SCHEMAS: dict[str, Any] = {
    "point": {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
    "tags": {"type": "array", "items": {"minimum": 3, "type": "number"}, "uniqueItems": True, "maxItems": 90},
    "more": {"type": "array", "items": {"minimum": 3, "type": "number"}, "uniqueItems": True, "maxItems": 80},
    "far": {"properties": {"a": {"$ref": "https://example.org/other.json"}}},
    "mail": {"type": "object", "properties": {"to": {"type": "string", "format": "email"}}},
    "odd": {"type": "sting"},
    "twins": {"type": "array", "prefixItems": [{"pattern": "^(.)\\1$", "type": "string"}]},
}
FILES = {
    "test/point/plain.json": '{"x": 1, "y": 2}',
    "test/point/turned.toml": "y = 1\nx = 2",
    "test/point/broken.yaml": "{",
    "test/mail/words.json": '{"to": "nobody"}',
    "negative_test/point/text.yaml": "x: here",
    "negative_test/mail/free.json": '{"cc": "any"}',
    "test/twins/equal.json": '["aa"]',
    "negative_test/twins/others.json": '["ab"]',
    "negative_test/twins/number.json": "[1]",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemastore")
    for name, schema in SCHEMAS.items():
        write(folder / "src/schemas/json" / f"{name}.json", json.dumps(schema))
    for name, text in FILES.items():
        write(folder / "src" / name, text)
    return folder


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def findings(checkout: Path, tokenizer: GrammarTokenizer) -> Findings:
    seen: list[tuple[int, int]] = []
    found = run_collection(checkout, tokenizer, lambda done, total: seen.append((done, total)), at_once=3)
    assert seen == [(index, len(SCHEMAS)) for index in range(1, len(SCHEMAS) + 1)]
    return found


def test_the_layout_is_recognised(checkout: Path, tmp_path: Path) -> None:
    assert is_schemastore(checkout)
    assert not is_schemastore(tmp_path)


def test_every_schema_is_judged_by_all_ways_or_set_apart(findings: Findings) -> None:
    assert findings.apart == {"far": Apart.REMOTE}
    assert [judgement.name for judgement in findings.judgements] == ["mail", "more", "odd", "point", "tags", "twins"]
    assert all({*judgement.by_way} - {CHECKED} == {*GRAMMARS, VALIDATOR} for judgement in findings.judgements)
    assert [judgement.name for judgement in findings.judgements if CHECKED in judgement.by_way] == ["more", "odd", "tags", "twins"]
    assert broken(findings) == ["odd"]


def test_instances_in_another_order_of_members_are_told_apart(findings: Findings) -> None:
    point = next(judgement for judgement in findings.judgements if judgement.name == "point")
    assert point.unread == 1
    assert [case.description for case in point.cases] == [
        "test/point/plain.json",
        "test/point/turned.toml",
        "negative_test/point/text.yaml",
    ]
    assert point.by_way[OURS].marks == [Mark.ACCEPTED, Mark.REORDERED, Mark.REJECTED]
    assert point.by_way[VALIDATOR].marks == [Mark.ACCEPTED, Mark.ACCEPTED, Mark.REJECTED]


def test_what_is_judged_otherwise_is_explained(findings: Findings) -> None:
    assert list(otherwise(findings, OURS)) == [
        Otherwise(OURS, "mail", "test/mail/words.json", True, Explanation.FORMAT),
        Otherwise(OURS, "mail", "negative_test/mail/free.json", False, Explanation.VALIDATOR),
    ]


def test_what_masks_alone_do_not_serve_is_judged_with_a_check(findings: Findings) -> None:
    twins = next(judgement for judgement in findings.judgements if judgement.name == "twins")
    assert twins.way(CHECKED).marks == [Mark.ACCEPTED, Mark.REJECTED, Mark.REJECTED]
    assert counts(findings, CHECKED).served == counts(findings, OURS).served + 3
    assert [name for _, _, name in causes(findings, CHECKED)] == ["odd"]
    assert unserved(findings) == []


def test_counts_hold_the_instances_of_refused_schemas(findings: Findings) -> None:
    ours = counts(findings, OURS)
    assert (ours.schemas, ours.served, ours.valid, ours.invalid) == (6, 2, 4, 4)
    assert (ours.valid_accepted, ours.valid_reordered, ours.invalid_rejected, ours.invalid_accepted, ours.correct) == (1, 1, 1, 1, 3)


def test_it_is_told_how_a_schema_is_served(findings: Findings) -> None:
    assert how_served(findings, "point") == ("by masks", "")
    assert how_served(findings, "far") == ("set apart", Apart.REMOTE.value)
    how, why = how_served(findings, "tags") or ("", "")
    assert (how, "`uniqueItems`" in why) == ("with a check", True)
    assert how_served(findings, "nothing") is None


def test_causes_are_grouped_whatever_the_place(findings: Findings) -> None:
    assert [(count, name) for _, count, name in causes(findings)] == [(2, "more"), (1, "odd"), (1, "twins")]


def test_children_run_side_by_side_and_fail_alone() -> None:
    works = [lambda: [1], hang, fill, lambda: [2]]
    found = dict(in_children(works, list, 1.0, 4, 64 << 20))
    assert found[0] == [1]
    assert found[3] == [2]
    assert isinstance(found[1], CompileTimeout)
    assert isinstance(found[2], CompileFailed)


def hang() -> list[int]:
    while True:
        pass


def fill() -> list[int]:
    return list(bytearray(256 << 20))
