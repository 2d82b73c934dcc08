"""The cluster at a glance, from the metrics of all its processes: what the page at `/` and `maskcast status --watch` show."""

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
    "forwards": "maskcast_engine_steps",
    "mask_frames": "maskcast_mask_frames",
}
"""By the name in the answer, the metric; counted since the processes began."""
ENGINE = {
    "running": "maskcast_engine_running",
    "grammars": "maskcast_engine_grammars_resident",
    "forwards": "maskcast_engine_steps",
    "restarts": "maskcast_engine_restarts",
}


def cluster_figures(families: Iterable[Metric]) -> dict[str, Any]:
    """`engines` by replica, `counters`, `compiles` by backend, and answered `requests` by tenant."""
    samples = {family.name: family.samples for family in families}
    return {
        "engines": _engines(samples),
        "counters": {name: sum(_by(samples, metric, "").values()) for name, metric in COUNTERS.items()},
        "compiles": _by(samples, "maskcast_compile_seconds", "backend", "_count"),
        "requests_by_tenant": _by(samples, "maskcast_requests", "tenant"),
    }


def _engines(samples: Mapping[str, list[Sample]]) -> list[dict[str, Any]]:
    figures = {name: _by(samples, metric, "replica") for name, metric in ENGINE.items()}
    replicas = sorted({replica for values in figures.values() for replica in values})
    return [{"replica": replica, **{name: values.get(replica, 0) for name, values in figures.items()}} for replica in replicas]


def _by(samples: Mapping[str, list[Sample]], metric: str, label: str, suffix: str = "") -> dict[str, int]:
    """Sums over all other labels. Counters' samples end in `_total`; what tells when they began does not count."""
    found: defaultdict[str, int] = defaultdict(int)
    for sample in samples.get(metric, ()):
        if sample.name in ((metric + suffix,) if suffix else (metric, f"{metric}_total")):
            found[sample.labels.get(label, "")] += int(sample.value)
    return dict(sorted(found.items()))
