"""All that the service counts reaches the page, and is there what the table says."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace

import pytest
from prometheus_client.core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from deployments.errors import ApiError
from deployments.telemetry.metrics import (
    CheckMetrics,
    CompileMetrics,
    EngineMetrics,
    GrammarMetrics,
    JumpMetrics,
    LookaheadMetrics,
    MaskMetrics,
    RequestMetrics,
)
from deployments.telemetry.page import PROCESS, MetricsPage
from deployments.telemetry.table import METRICS
from model_service.core_figures import CoreFigures
from model_service.masks.broadcaster_counters import MaskTotals
from model_service.messages import Endpoint, ReplicaStatus
from tests.waiting import until

pytestmark = pytest.mark.timeout(120)
MARK = "the table"
"""Where labels are free, so that what other tests have counted is not taken for this one's."""
FREE = ("tenant", "deployment", "application", "component", "backend")


def count_everything() -> None:
    RequestMetrics().finished(Endpoint.CHAT, 200, 0.3, MARK)
    CheckMetrics().count("retried", 1)
    GrammarMetrics(MARK).update({"compiled": 2})
    times = CompileMetrics()
    times.answered("stopgap", MARK, 0.002)
    times.waited(MARK, 0.1)
    times.compiled(MARK, 1.2, 0.3)
    JumpMetrics(MARK).update({"forced_tokens": 3, "forced_segments": 2, "steps_saved": 3})
    LookaheadMetrics(MARK).update({"answers": 1})
    core = replace(CoreFigures(), **{field.name: 1 for field in fields(CoreFigures)})
    EngineMetrics(MARK, "replica").update(ReplicaStatus("replica", 1, {}, core=core, restarts=1))
    MaskMetrics(MARK).update({field.name: 1 for field in fields(MaskTotals)})


def exposed() -> dict[str, Family]:
    """Nothing where the page takes longer than anybody waits."""
    try:
        page = asyncio.run(MetricsPage().read()).decode()
    except ApiError:
        return {}
    return {family.name: family for family in text_string_to_metric_families(page)}


def test_the_page_has_the_metrics_of_the_table_as_it_describes_them(ray_serve: None) -> None:
    count_everything()
    until(lambda: set(exposed()) >= set(METRICS))
    found = exposed()
    assert set(found) == set(METRICS)
    for name, metric in METRICS.items():
        family = found[name]
        assert family.type == metric.kind
        assert family.documentation == metric.meaning
        own = [one for one in family.samples if MARK in one.labels.values() or not set(FREE) & set(metric.labels)]
        assert {one.name for one in own} - {f"{name}_created"} == set(metric.samples)
        for sample in own:
            assert set(sample.labels) - {"le"} == {*metric.labels, PROCESS}
