"""What tracing costs is told by ratios of medians over rounds."""

from __future__ import annotations

from load_tests.traces.cost import ALL, ARMS, OFF, UNSAMPLED, targets


def test_each_way_of_tracing_is_compared_with_none() -> None:
    cost = dict(zip(ARMS, (2.0, 2.0, 2.1, 4.0), strict=True))
    rows = [{"arm": arm, "request_ms": cost[arm] * factor} for factor in (0.9, 1, 5) for arm in ARMS]
    found = {target.name: (target.value, target.holds) for target in targets(rows)}
    assert found[f"processor time of a request, {UNSAMPLED} / {OFF}"] == (1.0, True)
    assert found[f"processor time of a request, {ALL} / {OFF}"] == (2.0, False)
    assert len(found) == 3
