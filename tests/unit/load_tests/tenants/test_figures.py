"""What was promised to tenants, from the rows of a run."""

from __future__ import annotations

import json

import pytest

from deployments.reporting.report import Row, Target
from load_tests.tenants.bodies import floods
from load_tests.tenants.figures import targets


def held(rows: list[Row]) -> dict[str, Target]:
    return {target.name.partition(":")[0]: target for target in targets(rows)}


def light(scenario: str, phase: str, first_p99_ms: float | None, failed: int = 0) -> Row:
    return {"scenario": scenario, "phase": phase, "failed": failed, "first_p99_ms": first_p99_ms}


def test_each_flood_is_compared_with_the_time_before_it() -> None:
    rows = [light("x", "alone", 10.0), light("x", "beside", 14.0), light("y", "alone", 100.0, 1), light("y", "beside", 160.0)]
    found = held(rows)
    assert (found["x"].value, found["x"].holds) == (1.4, True)
    assert (found["y"].value, found["y"].holds) == (1.6, False)
    assert not found["requests of light clients that failed"].holds


def test_where_nobody_was_answered_nothing_holds() -> None:
    assert not held([light("x", "alone", 10.0), light("x", "beside", None)])["x"].holds


def test_the_worst_share_counts() -> None:
    worst, _ = targets([{"scenario": "weights", "share_by_due": share, "failed": 0} for share in (1.05, 0.85, 1.0)])
    assert worst.value == pytest.approx(0.15)
    assert not worst.holds


def test_two_ingresses_may_be_further_off() -> None:
    shares = [{"scenario": "two ingresses", "share_by_due": share, "failed": 1} for share in (1.1, 0.86, 1.0)]
    worst, failed, spread = targets([*shares, {"scenario": "two ingresses", "fewest": 20, "held": 100}])
    assert worst.value == pytest.approx(0.14)
    assert worst.holds
    assert (failed.value, failed.holds) == (3, False)
    assert (spread.value, spread.holds) == (0.2, False)


def test_without_redis_limits_hold_within_twice_and_nothing_fails() -> None:
    limited = {"scenario": "Redis killed", "limit": "tokens_per_minute", "used_by_limit": 2.1, "answered_after": 0, "failed": 0}
    flood = {"scenario": "Redis killed", "tenant": "one", "share_by_due": 3.0, "failed": 1}
    used, after, failed = targets([flood, {"scenario": "Redis killed", "redis": "down"}, limited])
    assert (used.value, used.holds) == (2.1, False)
    assert not after.holds
    assert (failed.value, failed.holds) == (1, False)


def test_memory_is_to_come_back() -> None:
    (target,) = targets([{"scenario": "memory", "phase": "after", "of": "all floods", "before_mib": 100, "after_mib": 109}])
    assert target.holds


def test_all_that_is_valid_json_in_a_flood_is_what_a_client_sends() -> None:
    for flood in floods(seats=64, widest=56):
        assert flood.clients > 0
        assert all(json.loads(body)["messages"] for body in flood.bodies)
