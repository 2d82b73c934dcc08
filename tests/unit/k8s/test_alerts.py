"""The alert rules ask for metrics that exist, hold where Prometheus' own tool looks at them, and fire when they should."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.telemetry.table import EVENTS, METRICS, samples
from tests.published.documents import code_spans, pages, rows
from tests.published.manifests import ROOT, program
from tests.published.promql import grouped, matched, names

GUIDE = "docs/guide/operations.md"
FOREIGN = {"ReplicaId", "le", "job", "pod"}
"""Labels that are not ours: of what an engine's own metrics are told with, and of Prometheus."""
(RULES,) = yaml.safe_load_all((ROOT / "k8s" / "base" / "alerts.yaml").read_text(encoding="utf-8"))
ALERTS = {rule["alert"]: rule for group in RULES["spec"]["groups"] for rule in group["rules"]}
LABELS = {label for metric in METRICS.values() for label in metric.labels} | FOREIGN
HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ALERTS)
def test_rules_name_what_there_is(name: str) -> None:
    query = ALERTS[name]["expr"]
    assert {each for each in names(query) if each.startswith("maskcast_")} <= set(samples())
    assert grouped(query) <= LABELS
    for _, label, values in matched(query):
        assert label in LABELS
        if label == "event":
            assert values <= {event for events in EVENTS.values() for event in events}


@pytest.mark.parametrize("name", ALERTS)
def test_rules_say_how_bad_it_is_and_what(name: str) -> None:
    assert ALERTS[name]["labels"]["severity"] in {"warning", "critical"}
    assert ALERTS[name]["annotations"]["summary"]


def test_the_guide_says_what_each_means() -> None:
    listed = {span for cells in rows(pages(GUIDE)[GUIDE]) for span in code_spans(cells[0]) if span.startswith("Maskcast")}
    assert listed == set(ALERTS)


def promtool(*arguments: str) -> None:
    found = program("promtool", "it comes with Prometheus (Debian: apt-get install prometheus)")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The rules as a file of Prometheus' own, which is what the operator makes of them."""
    file: Path = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(RULES["spec"]))
    return file


def test_prometheus_takes_the_rules(rules: Path) -> None:
    promtool("check", "rules", str(rules))


def test_each_rule_fires_when_it_should_and_not_in_a_service_in_order(rules: Path) -> None:
    scenarios: dict[str, Any] = yaml.safe_load((HERE / "alerts_fire.yaml").read_text(encoding="utf-8"))
    fired = {check["alertname"] for test in scenarios["tests"] for check in test["alert_rule_test"] if check.get("exp_alerts")}
    assert fired == set(ALERTS)
    calm = scenarios["tests"][0]["alert_rule_test"]
    assert {check["alertname"] for check in calm if not check.get("exp_alerts")} == set(ALERTS)
    file = rules.with_name("scenarios.yaml")
    file.write_text(yaml.safe_dump({**scenarios, "rule_files": [str(rules)]}))
    promtool("test", "rules", str(file))
