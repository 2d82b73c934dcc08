from __future__ import annotations

from typing import Any

import pytest

from load_tests.routing.clients import Asked
from load_tests.routing.figures import HOT, POPULAR, POWER_OF_TWO, SCHEMA, row, targets
from load_tests.routing.page import ReplicaFigures, read_page

PAGE = """# TYPE maskcast_engine_mask_rows_total counter
maskcast_engine_mask_rows_total{replica="a",WorkerId="1"} 30
maskcast_engine_mask_rows_total{replica="b",WorkerId="2"} 12
# TYPE maskcast_engine_grammars_resident gauge
maskcast_engine_grammars_resident{replica="a"} 5
# TYPE maskcast_engine_running gauge
maskcast_engine_running{replica="a"} 5
# TYPE vllm_e2e_request_latency_seconds histogram
vllm_e2e_request_latency_seconds_bucket{ReplicaId="a",le="+Inf"} 4
vllm_e2e_request_latency_seconds_sum{ReplicaId="a"} 2.5
vllm_e2e_request_latency_seconds_count{ReplicaId="a"} 4
"""


def test_a_page_is_read_by_replica() -> None:
    page = read_page(PAGE)
    assert page["a"] == ReplicaFigures(answered=4, request_s=2.5, mask_rows=30, grammars_resident=5)
    assert page["b"] == ReplicaFigures(mask_rows=12)


def test_a_row_tells_what_a_phase_has_added() -> None:
    before = {"a": ReplicaFigures(answered=10, request_s=5, mask_rows=100, distinct_mask_rows=50, masked_steps=10, grammars_loaded=2)}
    after = {
        "a": ReplicaFigures(20, 35, 300, 150, 30, 6, 4),
        "b": ReplicaFigures(10, 10, 100, 30, 20, 3, 2),
    }
    asked = [Asked(1.0, 200), Asked(2.0, 200), Asked(9.0, 503), Asked(9.0, 0)]
    found = row(0, SCHEMA, POPULAR, asked, 10.0, before, after)
    assert (found["requests"], found["failures"], found["latency_p50_ms"]) == (4, 2, 1500)
    assert found["statuses"] == {"200": 2, "503": 1, "0": 1}
    assert (found["grammars_resident"], found["brought"]) == (3, 7)
    assert (found["mask_rows_per_step"], found["distinct_rows_per_step"]) == (7.5, 3.25)
    assert found["load_by_replica"] == [3, 1]
    assert found["max_load_over_mean"] == 1.5


def test_targets_compare_medians_of_the_turns() -> None:
    def measured(policy: str, phase: str, figure: float) -> dict[str, Any]:
        names = ("grammars_resident", "distinct_rows_per_step", "brought", "latency_p99_ms", "max_load_over_mean")
        return {"policy": policy, "phase": phase, "failures": 1, **dict.fromkeys(names, figure)}

    rows = [measured(policy, phase, figure) for phase in (POPULAR, HOT) for policy, figure in ((SCHEMA, 1.0), (POWER_OF_TWO, 3.0))]
    rows += [measured(SCHEMA, POPULAR, 1.0), measured(SCHEMA, POPULAR, 100.0)]
    found = {target.name: target for target in targets(rows)}
    assert found["grammars resident on a replica, power of two / ours"].value == pytest.approx(3)
    assert found["p99 latency, ours / power of two"].value == pytest.approx(1 / 3)
    assert found["most loaded replica / mean"].holds
    assert found["one hot schema: p99 latency, ours / power of two"].value == pytest.approx(1 / 3)
    assert not found["requests that were not answered"].holds
