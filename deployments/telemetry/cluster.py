"""The summary of the cluster that the playground and `maskcast status --watch` show, from the metrics of all processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.samples import Sample

COUNTERS = {
    "requests": "maskcast_requests",
    "forced_tokens": "maskcast_forced_tokens",
    "accepted_drafts": "maskcast_engine_accepted_drafts",
    "steps": "maskcast_engine_steps",
    "mask_frames": "maskcast_mask_frames",
}
"""The metric of each counter in the summary."""
ENGINE = {
    "running": "maskcast_engine_running",
    "grammars": "maskcast_engine_grammars_resident",
    "steps": "maskcast_engine_steps",
    "restarts": "maskcast_engine_restarts",
}


def cluster_summary(families: Iterable[Metric]) -> dict[str, Any]:
    """`engines` by replica, `counters`, `compiles` by backend, and answered `requests` by tenant."""
    samples = {family.name: family.samples for family in families}
    return {
        "engines": _engines(samples),
        "counters": {name: sum(_by(samples, metric, "process").values()) for name, metric in COUNTERS.items()},
        "compiles": _by(samples, "maskcast_compile_seconds", "backend", "_count"),
        "requests_by_tenant": _by(samples, "maskcast_requests", "tenant"),
    }


def _engines(samples: Mapping[str, list[Sample]]) -> list[dict[str, Any]]:
    figures = {name: _by(samples, metric, "replica") for name, metric in ENGINE.items()}
    replicas = sorted({replica for values in figures.values() for replica in values})
    return [{"replica": replica, **{name: values.get(replica, 0) for name, values in figures.items()}} for replica in replicas]


def _by(samples: Mapping[str, list[Sample]], metric: str, label: str, suffix: str = "") -> dict[str, int]:
    """Sums by one label, over all others. `suffix`: of the samples that count; a counter's end in `_total`, a gauge's have none."""
    names = {f"{metric}{suffix}"} if suffix else {metric, f"{metric}_total"}
    found: defaultdict[str, int] = defaultdict(int)
    for sample in samples.get(metric, ()):
        if sample.name in names:
            found[sample.labels.get(label, "")] += int(sample.value)
    return dict(sorted(found.items()))
