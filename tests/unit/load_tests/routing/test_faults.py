from __future__ import annotations

from typing import Any

from load_tests.routing.callers import Call
from load_tests.routing.faults import EVENTS, JOINED, KILLED, row, targets
from load_tests.routing.page import ReplicaFigures


def rows(**changed: Any) -> list[dict[str, Any]]:
    usual = {"back_s": 2.0, "grammars_moved": 6, "replicas_answering": 1, "unclean": 0, "held": 6}
    return [{"event": event, **usual, **changed} for event in EVENTS]


def test_a_row_tells_who_was_answered_and_what_moved() -> None:
    before = {"a": ReplicaFigures(answered=10, grammars_loaded=6), "b": ReplicaFigures(answered=8, grammars_loaded=5)}
    after = {"a": ReplicaFigures(answered=10, grammars_loaded=6), "b": ReplicaFigures(answered=9, grammars_loaded=9)}
    calls = [Call(0, 0.0, 1.0, 200), Call(1, 0.0, 1.0, 503, "engine_dead"), Call(2, 0.0, 1.0, 0, "ReadError")]
    found = row(KILLED, 6, calls, 1.234, before, after)
    assert (found["answered"], found["unclean"], found["requests"]) == (1, 1, 3)
    assert (found["grammars_moved"], found["replicas_answering"], found["back_s"]) == (4, 1, 1.23)
    assert found["statuses"] == {"200": 1, "503 engine_dead": 1, "0 ReadError": 1}


def test_all_targets_hold_where_traffic_is_back_soon_and_few_grammars_move() -> None:
    assert all(target.holds for target in targets(rows(), 4))


def test_what_never_comes_back_moves_too_much_or_fails_uncleanly_misses() -> None:
    def missed(**changed: Any) -> list[str]:
        return [target.name for target in targets(rows(**changed), 4) if not target.holds]

    assert len(missed(back_s=None)) == len(EVENTS)
    assert missed(grammars_moved=7) == [f"a replica {KILLED}: grammars that move / that it held"]
    assert len(missed(grammars_moved=13)) == 2
    assert len(missed(unclean=1)) == 1
    assert missed(replicas_answering=0) == [f"a replica {JOINED}: new replicas that answer"]
