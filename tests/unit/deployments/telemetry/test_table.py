"""The table of metrics is what the docs show, and what the service makes its metrics of."""

from __future__ import annotations

import ast
from dataclasses import asdict
from pathlib import Path

from deployments.grammars.registry import AheadCounters
from deployments.telemetry.table import EVENTS, METRICS, samples, tables
from grammar_service.artifacts.cache.redis import RedisCounters
from grammar_service.artifacts.cache.tiered import TierCounters
from grammar_service.compiler.counters import CompilerCounters
from grammar_service.registry.store import RegistryCounters
from tests.published.documents import ROOT, pages

PAGE = "docs/guide/metrics.md"
MAKERS = {"deployments/telemetry/metrics.py", "deployments/telemetry/handed_on.py"}
LABELS = {
    *("endpoint", "status", "tenant", "event", "component", "deployment", "replica", "application", "counted", "tier", "backend"),
    "source",
}
"""None of them takes its values from what requests say."""


def test_the_page_is_the_table() -> None:
    assert tables() in pages(PAGE)[PAGE]


def test_no_label_is_a_key_a_prompt_or_a_grammar() -> None:
    assert {label for metric in METRICS.values() for label in metric.labels} == LABELS


def test_names_tell_their_units() -> None:
    endings = {"s": "_seconds", "µs": "_us", "B": "_bytes"}
    for metric in METRICS.values():
        assert metric.name.endswith(endings.get(metric.unit, "")), metric.name
    assert len(set(samples())) == len(list(samples()))


def test_nothing_else_makes_metrics() -> None:
    found = set()
    for package in ("deployments", "grammar_service", "model_service", "router"):
        found |= {str(file.relative_to(ROOT)) for file in (ROOT / package).rglob("*.py") if makes_metrics(file)}
    assert found == MAKERS


def makes_metrics(file: Path) -> bool:
    imports = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Import | ast.ImportFrom))
    return any("ray.util.metrics" in ast.unparse(node) for node in imports)


def test_the_events_are_those_that_are_counted() -> None:
    tiers = {*asdict(TierCounters()), *(f"redis_server_{name}" for name in asdict(RedisCounters()))}
    assert set(EVENTS["compiler"]) == {*CompilerCounters().as_dict(), "remembered", "children_replaced", *tiers}
    assert set(EVENTS["model"]) == {"pool_calls", *tiers}
    assert set(EVENTS["registry"]) == {*asdict(AheadCounters()), *asdict(RegistryCounters())}
