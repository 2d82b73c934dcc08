"""The dashboard asks for metrics that exist, by labels that they have."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest

from deployments.telemetry.dashboard import FILE, Query, dashboard, dashboard_json, panels
from deployments.telemetry.table import EVENTS, METRICS, samples
from tests.published.promql import grouped, matched, names

QUERIES = [query for panel in panels() for query in panel.queries]
OF_SAMPLE = {sample: metric for metric in METRICS.values() for sample in metric.samples}
LEGEND = re.compile(r"\{\{(\w+)\}\}")


def test_the_file_is_what_is_generated() -> None:
    assert FILE.read_text(encoding="utf-8") == dashboard_json()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.expression)
def test_queries_name_what_there_is(query: Query) -> None:
    ours = {name for name in names(query.expression) if name.startswith("maskcast_")}
    assert ours <= set(samples())
    for sample in ours:
        assert grouped(query.expression) <= {*OF_SAMPLE[sample].labels, "le"}
    for sample, label, values in matched(query.expression):
        assert label in OF_SAMPLE[sample].labels
        if label == "event":
            (component,) = next(values for _, name, values in matched(query.expression) if name == "component")
            assert values <= set(EVENTS[component])
    assert set(LEGEND.findall(query.legend)) <= grouped(query.expression)


def test_every_metric_of_ours_is_on_it_but_for_details() -> None:
    shown = {OF_SAMPLE[name].name for query in QUERIES for name in names(query.expression) if name in OF_SAMPLE}
    details = {
        "steps_saved",
        "engine_masked_steps",
        "engine_mask_rows",
        "engine_distinct_mask_rows",
        "engine_preemptions",
        "engine_grammars_loaded",
        "engine_canonical_answers",
        "engine_canonical_fallbacks",
        "engine_redraws",
        "engine_drafts",
        "engine_accepted_drafts",
        "mask_rows",
        "lookahead",
    }
    assert set(METRICS) - shown == {f"maskcast_{name}" for name in details}


def test_panels_do_not_overlap_and_have_names_of_their_own() -> None:
    placed = dashboard()["panels"]
    assert len({panel["id"] for panel in placed}) == len(placed)
    for one, other in combinations(placed, 2):
        assert not overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])
    assert all(place["x"] + place["w"] <= 24 for place in (panel["gridPos"] for panel in placed))


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    across = one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
    return bool(across and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"])
