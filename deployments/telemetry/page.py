"""One Prometheus page for the whole cluster.

The Ray agents of the nodes (Ray 2.60) are what a Prometheus server scrapes on a cluster; this page merges theirs and keeps what is
about serving. Anybody who reaches the service can read it, so that by default it tells of nothing but what the service counts itself, and
not on which nodes and in which processes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence

import httpx
import ray
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from deployments.errors import unavailable
from deployments.telemetry.kept import Kept, Late

OWN = ("ray_maskcast_",)
ALL = (*OWN, "ray_vllm_", "ray_serve_")
KEPT_S = 5.0
"""The agents hear of news every ten seconds, and a page takes tenths of a second of a processor."""
PROCESS = "process"
"""The label that tells processes apart where they are not named."""
SCOPE = "otel_scope_"
"""Labels that the agents' exporter gives to all samples, and that tell nothing (OpenTelemetry's mapping to Prometheus)."""


class MetricsPage:
    """Reads the agents' pages, anew after `KEPT_S`; a node that does not answer within `timeout_s` is left out. `everything`: vLLM's and
    Ray Serve's metrics as well, and all labels."""

    def __init__(self, *, everything: bool = False, timeout_s: float = 2.0) -> None:
        self._everything = everything
        self._timeout_s = timeout_s
        self._page = Kept(self._merged, KEPT_S, patience_s=2 * timeout_s)

    async def read(self) -> bytes:
        """Raises ApiError (503): Ray's head does not tell of the nodes. An old page would be taken for a new one."""
        _, text = await self._read()
        return text

    async def families(self) -> Sequence[Metric]:
        """What the page says, not as text. Raises ApiError as `read` does."""
        families, _ = await self._read()
        return families

    async def _read(self) -> tuple[Sequence[Metric], bytes]:
        try:
            return await self._page.get()
        except Late:
            raise unavailable("Ray does not tell of its nodes; try again in a moment.", "metrics_unavailable") from None

    async def _merged(self) -> tuple[Sequence[Metric], bytes]:
        addresses = await asyncio.to_thread(_agents)
        async with httpx.AsyncClient(timeout=self._timeout_s, trust_env=False) as client:
            pages = await asyncio.gather(*(_page(client, address) for address in addresses))
        return await asyncio.to_thread(_exposition, pages, self._everything)


class _Fixed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _exposition(pages: Iterable[str], everything: bool) -> tuple[Sequence[Metric], bytes]:
    families = merged(pages, everything=everything)
    return families, generate_latest(_Fixed(families))


def merged(pages: Iterable[str], *, everything: bool) -> list[Metric]:
    """The kept families of all pages, each once, without Ray's prefix on our own names."""
    families: dict[str, Metric] = {}
    for page in pages:
        for family in text_string_to_metric_families(_about(ALL if everything else OWN, page)):
            name = family.name.removeprefix("ray_")
            kept = families.setdefault(name, Metric(name, family.documentation, family.type))
            named = (sample._replace(name=sample.name.removeprefix("ray_")) for sample in family.samples)
            kept.samples += named if everything else map(_unplaced, named)
    return list(families.values())


def _about(prefixes: tuple[str, ...], page: str) -> str:
    """The lines about metrics with these prefixes: to parse the others, of 1.2 MB, takes 140 ms in place of 6, and answers wait for it."""
    lines = page.splitlines(keepends=True)
    return "".join(line for line in lines if line.removeprefix("# HELP ").removeprefix("# TYPE ").startswith(prefixes))


def _unplaced(sample: Sample) -> Sample:
    """With one label in place of Ray's, which are written like `WorkerId` and name addresses and processes. Processes stay apart: summed,
    counters would fall when one of them ends."""
    ours = {name: value for name, value in sample.labels.items() if name.islower() and not name.startswith(SCOPE)}
    rays = sorted((name, value) for name, value in sample.labels.items() if not name.islower())
    digest = hashlib.blake2b(repr(rays).encode(), digest_size=6).hexdigest()
    return sample._replace(labels={**ours, PROCESS: digest})


def _agents() -> list[str]:
    return [
        f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
        for node in ray.nodes()
        if node.get("Alive") and node.get("MetricsExportPort")
    ]


async def _page(client: httpx.AsyncClient, address: str) -> str:
    try:
        return (await client.get(address)).text
    except httpx.HTTPError:
        return ""
