from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.console import Console

from deployments.config import parse_settings
from deployments.local import LocalCluster
from deployments.ports import free_port
from deployments.progress import Progress
from tests.e2e.service import Service

SMALL_QUEUES = {"max_ongoing_requests": 32, "max_queued_requests": 32}  # so that a test can fill them


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """One running service for the whole session: the embedded model, two compile replicas, a Redis of its own."""
    port = free_port("127.0.0.1")
    settings = parse_settings(
        {
            "http": {"port": port, "max_body_mib": 1},
            "model": {"max_num_seqs": 32, **SMALL_QUEUES},
            "grammars": {"from-settings": {"choice": ["left", "right"]}},
        }
    )
    cluster = LocalCluster(settings, Progress(Console(stderr=True)))
    try:
        cluster.start()
        yield Service(f"http://127.0.0.1:{port}", cluster)
    finally:
        cluster.stop()
