from __future__ import annotations

import pytest

from deployments.reporting.report import Target
from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.corpus.cases import Case
from load_tests.grammar.messages import Assignment, Measured
from load_tests.grammar.targets import codec_targets, pool_targets, ready_cases, ready_targets


def named(targets: list[Target], name: str) -> Target:
    (found,) = [target for target in targets if target.name == name]
    return found


def ready(case: str, ours: float, compiling: float, fetching: float | None, backend: str = "xgrammar") -> Measured:
    return Measured(case, {"backend": backend, "ours_ms": ours, "compile_ms": compiling, "fetch_ms": fetching})


def test_the_oracle_takes_the_better_way_for_each_grammar() -> None:
    cases = ready_cases([ready("a", 11, 10, 100), ready("b", 33, 900, 30), ready("c", 5, 5, None, "llguidance")])
    over = named(ready_targets(cases), "ready to mask / oracle, total")
    assert over.value == pytest.approx(49 / 45)
    assert over.holds
    assert named(ready_targets(cases), "ready to mask / oracle, total on xgrammar").value == pytest.approx(44 / 40)


def test_only_slow_grammars_count_for_the_speed_up() -> None:
    cases = ready_cases([ready("quick", 100, 199, None), ready("slow", 100, 400, None), ready("slower", 100, 600, None)])
    assert named(ready_targets(cases), "compile / ready to mask, over 200 ms, median").value == pytest.approx(5)


def test_a_case_counts_with_its_median_over_turns() -> None:
    (case,) = ready_cases([ready("a", 1, 10, 5), ready("a", 3, 10, None), ready("a", 50, 10, 7), Measured("a", {"fault": "took too long"})])
    assert (case.ours_ms, case.compile_ms, case.fetch_ms) == (3, 10, 6)


def test_sizes_are_of_what_travels_and_shared_tables_are_told_apart() -> None:
    rows = [
        Measured("recipe", {"json_bytes": 1000, "payload_bytes": 10, "holds_tables": False, "decode_ms": 3.0, "deserialize_ms": 2.0}),
        Measured("tables", {"json_bytes": 5000, "payload_bytes": 1000, "holds_tables": True, "decode_ms": 1.0, "deserialize_ms": 1.0}),
        Measured("huge", {"payload_bytes": 10, "holds_tables": False, "never_expanded": True}),
    ]
    targets = codec_targets(rows)
    assert named(targets, "shared tables: serialize_json bytes / ours, p90").value == 5
    assert not named(targets, "shared tables: serialize_json bytes / ours, p90").holds
    assert named(targets, "all grammars: serialize_json bytes / ours, p90").value == pytest.approx(90.5)
    assert named(targets, "all grammars: decode / deserialize_json, median").value == pytest.approx(1.25)
    assert named(targets, "all grammars: decode / deserialize_json, total").value == pytest.approx(4 / 3)


def test_cold_first_masks_count_where_llguidance_answers_first() -> None:
    rows = [Measured("a", {"quick": True, "cold_ms": 2.0, "hit_ms": 0.5}), Measured("b", {"quick": False, "cold_ms": 900.0, "hit_ms": 1.5})]
    targets = pool_targets([*rows, Measured("c", {"refused": "nobody enforces it"})])
    assert named(targets, "cold first mask on llguidance, p99").value == 2
    assert named(targets, "hit in memory, in process, median").value == 1


def test_nothing_measured_holds_nothing() -> None:
    assert not any(target.holds for target in [*codec_targets([]), *ready_targets([]), *pool_targets([])])


def test_the_culprit_is_left_out_and_the_measured_keep_the_next_child_warm() -> None:
    first, culprit, last = (Case(name, GrammarSpec(GrammarKind.REGEX, name)) for name in ("first", "culprit", "last"))
    left = Assignment("ready", "folder", [first, culprit, last]).after({"first"}, "culprit")
    assert left.cases == [last]
    assert left.warm == [first]
