"""What the cluster does, at a glance."""

from __future__ import annotations

from deployments.telemetry.cluster import cluster_summary
from deployments.telemetry.page import merged

PAGE = """# TYPE ray_maskcast_requests_total counter
ray_maskcast_requests_total{status="200",tenant="a",WorkerId="%s"} %d
ray_maskcast_requests_total{status="400",tenant="b",WorkerId="%s"} 1
# TYPE ray_maskcast_engine_running gauge
ray_maskcast_engine_running{replica="r%d",WorkerId="x"} 3
# TYPE ray_maskcast_engine_steps_total counter
ray_maskcast_engine_steps_total{replica="r%d",WorkerId="x"} 50
# TYPE ray_maskcast_compile_seconds histogram
ray_maskcast_compile_seconds_bucket{backend="xgrammar",le="1.0"} 2
ray_maskcast_compile_seconds_bucket{backend="xgrammar",le="+Inf"} 4
ray_maskcast_compile_seconds_sum{backend="xgrammar"} 9.5
ray_maskcast_compile_seconds_count{backend="xgrammar"} 4
"""
PAGES = [PAGE % ("one", 2, "one", 1, 1), PAGE % ("two", 5, "two", 2, 2)]


def test_figures_of_all_nodes_are_added_up() -> None:
    found = cluster_summary(merged(PAGES, everything=False))
    assert found["requests_by_tenant"] == {"a": 7, "b": 2}
    assert found["counters"]["requests"] == 9
    assert found["counters"]["steps"] == 100
    assert found["compiles"] == {"xgrammar": 8}


def test_engines_are_told_one_by_one() -> None:
    engines = cluster_summary(merged(PAGES, everything=False))["engines"]
    assert engines == [{"replica": f"r{number}", "running": 3, "grammars": 0, "steps": 50, "restarts": 0} for number in (1, 2)]


def test_a_service_that_has_done_nothing_has_zeros() -> None:
    found = cluster_summary([])
    assert found["engines"] == []
    assert set(found["counters"].values()) == {0}
