from __future__ import annotations

import json
from pathlib import Path

import pytest

from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.corpus.cases import Case
from load_tests.errors import BenchFailed
from load_tests.grammar.bounded import Bounds, run_bounded
from load_tests.grammar.messages import Assignment, Began, Line, RedisAddress
from load_tests.grammar.runner import GrammarBench, Plan, report
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess

PERSON = '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}'
DATED = '{"type": "object", "properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]}'
GOOD = [
    Case("person", GrammarSpec(GrammarKind.JSON_SCHEMA, PERSON)),
    Case("dated", GrammarSpec(GrammarKind.JSON_SCHEMA, DATED)),
    Case("query", GrammarSpec(GrammarKind.EBNF, 'root ::= "SELECT " [a-z]+ | "DELETE"')),
]
ITEMS = {"type": "array", "items": {"type": "number", "minimum": 3}, "uniqueItems": True}
REFUSED = Case("refused", GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(ITEMS)))
OF_MINUTES = Case(
    "minutes", GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps({"enum": [f"{n * 7919 % 100_003}x{n}" for n in range(20_000)]}))
)


def test_a_whole_run_measures_every_part(model_folder: Path, redis_server: RedisProcess) -> None:
    told: list[tuple[str, int, int]] = []
    plan = Plan(str(model_folder), [*GOOD, REFUSED], redis=RedisAddress(redis_server.url, PASSWORD, "bench"), rounds=1)
    figures = GrammarBench(plan, lambda *step: told.append(step)).run()
    assert {row.case: "refused" in row.values for row in figures.pool} == {"person": False, "dated": False, "query": False, "refused": True}
    assert {row.case for row in figures.codec} == {"person", "query"}
    assert sorted(row.case for row in figures.ready) == sorted(case.name for case in GOOD)
    assert all(row.fault is None for rows in (figures.pool, figures.codec, figures.ready) for row in rows)
    assert {name.partition(",")[0] for name, _, _ in told} == {"pool", "codec", "ready"}
    found = report("python -m load_tests.grammar", figures)
    assert all(target.value is not None for target in found.targets if "over 200 ms" not in target.name and "shared" not in target.name)
    assert {row["part"] for row in found.rows} == {"pool", "codec", "ready"}


def test_a_grammar_that_takes_too_long_is_reported_and_the_others_go_on(model_folder: Path) -> None:
    heard: list[Line] = []
    rows = run_bounded(Assignment("codec", str(model_folder), [GOOD[0], OF_MINUTES, GOOD[2]]), Bounds(step_s=8.0), heard.append)
    assert [row.case for row in rows] == ["person", "minutes", "query"]
    assert [row.fault for row in rows] == [None, "took more than 8 s", None]
    assert rows[2].number("json_bytes")
    assert [line.case for line in heard if isinstance(line, Began)] == ["person", "minutes", "query"]


def test_a_child_that_cannot_start_fails_the_benchmark(tmp_path: Path) -> None:
    with pytest.raises(BenchFailed, match="ended with code 1"):
        run_bounded(Assignment("codec", str(tmp_path), GOOD), Bounds(), lambda _: None)
