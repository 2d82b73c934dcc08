"""What Prometheus' client has counted in a process reaches the page by Ray's agents, under the same names."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.parser import text_string_to_metric_families

from deployments.errors import ApiError
from deployments.telemetry.handed_on import HandedOn
from deployments.telemetry.page import MetricsPage
from tests.waiting import until

pytestmark = pytest.mark.timeout(120)


def test_counters_and_histograms_are_found_on_the_page(ray_serve: None) -> None:
    registry = CollectorRegistry()
    Counter("vllm:said", "Tokens.", ["engine"], registry=registry).labels("0").inc(3)
    seconds = Histogram("vllm:waited_seconds", "Seconds.", ["engine"], registry=registry, buckets=(1, 2, 4)).labels("0")
    for value in (1.5, 3):
        seconds.observe(value)
    Counter("others", "Not of interest.", registry=registry).inc()
    handed_on = HandedOn("vllm:", {"ReplicaId": "tested"}, registry)

    def found() -> dict[tuple[str, str], float]:
        asyncio.run(handed_on.publish())
        try:
            page = asyncio.run(MetricsPage(everything=True).read()).decode()
        except ApiError:  # it takes longer than anybody waits
            return {}
        samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
        return {(one.name, one.labels.get("le", "")): one.value for one in samples if one.labels.get("ReplicaId") == "tested"}

    wanted = {("vllm_said_total", ""): 3, ("vllm_waited_seconds_sum", ""): 4.5, ("vllm_waited_seconds_count", ""): 2}
    buckets = {("vllm_waited_seconds_bucket", le): value for le, value in (("2.0", 1), ("4.0", 2), ("+Inf", 2))}
    until(lambda: found() == {**wanted, **buckets})
