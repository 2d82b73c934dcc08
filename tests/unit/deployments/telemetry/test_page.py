"""Pages of several nodes become one page."""

from __future__ import annotations

from deployments.telemetry.page import merged

PAGE = """# HELP ray_maskcast_requests_total Requests.
# TYPE ray_maskcast_requests_total counter
ray_maskcast_requests_total{status="200",NodeAddress="%s"} %d
# HELP ray_node_cpu CPU.
# TYPE ray_node_cpu gauge
ray_node_cpu 3
"""


def test_families_of_all_nodes_are_merged_and_foreign_ones_left_out() -> None:
    families = merged([PAGE % ("a", 2), PAGE % ("b", 5), ""])
    assert [family.name for family in families] == ["maskcast_requests"]
    assert sorted(sample.value for sample in families[0].samples) == [2, 5]
    assert {sample.name for sample in families[0].samples} == {"maskcast_requests_total"}
