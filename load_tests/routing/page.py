"""What a service's metrics page says of its replicas."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

import httpx
from prometheus_client.parser import text_string_to_metric_families

from load_tests.errors import NeverSteady

LOOK_S, STEADY_S, PATIENCE_S = 1.0, 12.0, 90.0
ALL_METRICS = {"metrics": "all"}
"""The settings of HTTP with which the page tells of vLLM too."""
_ENGINE = "maskcast_engine_"
_ANSWERED, _SECONDS = "vllm_e2e_request_latency_seconds_count", "vllm_e2e_request_latency_seconds_sum"


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """Of one replica, since it started: requests that it has answered and the seconds that they spent in it, all together; mask rows,
    different ones of each step, and steps that had any; grammars that it had to load, and those that it holds."""

    answered: float = 0.0
    request_s: float = 0.0
    mask_rows: float = 0.0
    distinct_mask_rows: float = 0.0
    masked_steps: float = 0.0
    grammars_loaded: float = 0.0
    grammars_resident: float = 0.0

    def since(self, earlier: ReplicaFigures) -> ReplicaFigures:
        """What has been added; grammars that it holds are those that it holds now."""
        added = {one.name: getattr(self, one.name) - getattr(earlier, one.name) for one in fields(self)}
        return ReplicaFigures(**{**added, "grammars_resident": self.grammars_resident})


Told = TypeVar("Told")
Page = Mapping[str, ReplicaFigures]
"""By replica."""


def read_page(text: str) -> Page:
    found: dict[str, dict[str, float]] = {}
    known = {one.name for one in fields(ReplicaFigures)}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = {_ANSWERED: "answered", _SECONDS: "request_s"}.get(sample.name)
            name = name or sample.name.removeprefix(_ENGINE).removesuffix("_total")
            replica = sample.labels.get("ReplicaId") or sample.labels.get("replica")
            if replica and name in known:
                of = found.setdefault(replica, {})
                of[name] = of.get(name, 0.0) + sample.value
    return {replica: ReplicaFigures(**figures) for replica, figures in sorted(found.items())}


def page_of(url: str) -> Page:
    return read_page(httpx.get(f"{url}/metrics", timeout=30, trust_env=False).text)


def settled_page(url: str, read: Callable[[str], Told]) -> Told:
    """What is read of the page when it tells the same for `STEADY_S`: processes report to it every ten seconds.

    Raises:
        NeverSteady: it goes on changing for `PATIENCE_S`.
    """
    give_up = time.monotonic() + PATIENCE_S
    last: Told | None = None
    since = time.monotonic()
    while time.monotonic() < give_up:
        page = read(url)
        if page != last:
            last, since = page, time.monotonic()
        elif page and time.monotonic() - since >= STEADY_S:
            return page
        time.sleep(LOOK_S)
    raise NeverSteady(f"the metrics of {url} go on changing though nobody asks")
