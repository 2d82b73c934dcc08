from __future__ import annotations

from itertools import product

import pytest

from deployments.reporting.report import Row
from load_tests.front_door.figures import WAYS, WHOLE
from load_tests.front_door.handle.figures import BATCH, BATCH_CLIENTS, CLIENTS, HANDLE, HTTP, RESPONSES, WORKLOADS, targets


def rows(slower: float) -> list[Row]:
    """By handle, and by the Responses API, all takes so much longer."""
    figures = {HTTP: (10.0, 100.0), **dict.fromkeys((HANDLE, RESPONSES), (10.0 / slower, 100.0 * slower))}
    return [
        {
            "turn": turn,
            "side": side,
            "workload": workload,
            "clients": clients,
            "answers": way,
            "failed": 0,
            "wrong": 0,
            "requests_per_s": more,
            "latency_p50_ms": ms,
        }
        for turn, (side, (more, ms)), workload, clients, way in product(range(2), figures.items(), WORKLOADS, CLIENTS, WAYS)
    ]


def batches(slower: float) -> list[Row]:
    same = {"turn": 0, "workload": WORKLOADS[0], "clients": BATCH_CLIENTS, "answers": WHOLE, "failed": 0, "wrong": 0}
    return [{**same, "side": HTTP, "requests_per_s": 50.0}, {**same, "side": BATCH, "requests_per_s": 50.0 / slower}]


def test_a_batch_takes_as_long_as_clients_do() -> None:
    assert [target.holds for target in targets(batches(1.1))] == [False, True, True]
    assert all(target.holds for target in targets(batches(1.0)))


def test_the_promises_are_throughput_of_many_and_latency_of_one() -> None:
    found = targets(rows(1.25))
    assert len(found) == len(WORKLOADS) * len(WAYS) * (len(CLIENTS) + 1) + 2
    assert sorted({target.value for target in found if target.value is not None}) == pytest.approx([0, 0.8, 1.25])
    assert sum(target.holds for target in found) == 2, "all were answered, and well"
    assert all(target.holds for target in targets(rows(1.0)))
