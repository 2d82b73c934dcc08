"""Pages of several nodes become one page."""

from __future__ import annotations

from deployments.telemetry.page import merged

PAGE = """# HELP ray_maskcast_requests_total Requests.
# TYPE ray_maskcast_requests_total counter
ray_maskcast_requests_total{status="200",NodeAddress="%s",WorkerId="4f2a",otel_scope_name="ray"} %d
# HELP ray_node_cpu CPU.
# TYPE ray_node_cpu gauge
ray_node_cpu 3
# HELP ray_vllm_running Requests.
# TYPE ray_vllm_running gauge
ray_vllm_running{WorkerId="4f2a"} 1
"""
PAGES = [PAGE % ("10.0.0.1", 2), PAGE % ("10.0.0.2", 5), ""]


def test_families_of_all_nodes_are_merged_and_foreign_ones_left_out() -> None:
    families = merged(PAGES, everything=False)
    assert [family.name for family in families] == ["maskcast_requests"]
    assert sorted(sample.value for sample in families[0].samples) == [2, 5]
    assert {sample.name for sample in families[0].samples} == {"maskcast_requests_total"}


def test_processes_are_told_apart_and_not_named() -> None:
    (family,) = merged(PAGES, everything=False)
    assert [set(sample.labels) for sample in family.samples] == [{"status", "process"}] * 2
    assert {sample.labels["status"] for sample in family.samples} == {"200"}
    assert len({sample.labels["process"] for sample in family.samples}) == 2
    assert not any(place in str(family) for place in ("10.0.0", "4f2a"))
    assert merged(PAGES, everything=False)[0].samples == family.samples


def test_everything_that_is_about_serving_keeps_its_labels() -> None:
    families = {family.name: family for family in merged(PAGES, everything=True)}
    assert set(families) == {"maskcast_requests", "vllm_running"}
    assert families["maskcast_requests"].samples[0].labels == {
        "status": "200",
        "NodeAddress": "10.0.0.1",
        "WorkerId": "4f2a",
        "otel_scope_name": "ray",
    }
