"""What vLLM counts in a replica with Prometheus' own client, handed on to Ray, whose agents are what a cluster's Prometheus reads.

vLLM has a logger that tells Ray itself (vLLM 0.32: `v1/metrics/ray_wrappers.py`), value by value: 1.3 ms of processor time a request.
Prometheus' client takes a tenth of it, and what it has summed up is told here in one go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from prometheus_client import REGISTRY
from prometheus_client.registry import CollectorRegistry
from prometheus_client.samples import Sample
from ray.util.metrics import Gauge

VLLM = "vllm:"


class HandedOn:
    """The samples of the families whose names begin with `prefix`, under the names that they have on a page, with `labels` besides.

    All are gauges to Ray, which takes counters and histograms only piece by piece; their names and values are what queries go by.
    """

    def __init__(self, prefix: str, labels: Mapping[str, str], registry: CollectorRegistry = REGISTRY) -> None:
        self._prefix = prefix
        self._labels = labels
        self._registry = registry
        self._gauges: dict[str, Gauge] = {}

    async def publish(self) -> None:
        """To be called more often than Ray's agents are told, every ten seconds: they forget gauges that nobody sets. It takes milliseconds
        in all, and others have their turn between two families: a thread would hold the interpreter's lock as long."""
        for family in self._registry.collect():
            if family.name.startswith(self._prefix):
                await asyncio.sleep(0)
                for sample in family.samples:
                    if (sample.value or family.type == "gauge") and not sample.name.endswith("_created"):
                        self._gauge(sample, family.documentation).set(sample.value, {**sample.labels, **self._labels})

    def _gauge(self, sample: Sample, told: str) -> Gauge:
        name = sample.name.replace(":", "_")
        if (gauge := self._gauges.get(name)) is None:
            gauge = self._gauges[name] = Gauge(name, told, (*sample.labels, *self._labels))
        return gauge
