from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from deployments.access.key_file import entry_text, new_key
from deployments.builders import EMBEDDED_WEIGHTS
from deployments.config import parse_settings
from deployments.local.local import LocalCluster
from deployments.local.ports import free_port
from deployments.local.progress import Progress
from load_tests.traces.collector import Collector, collecting
from tests.e2e.service import Service

SMALL_QUEUES = {"max_ongoing_requests": 32, "max_queued_requests": 32}  # so that a test can fill them

REWARDS = {
    "brief": {"import_path": "model_service.lookahead.rewards.length:Length", "args": {"least": 0, "most": 4, "unit": "characters"}},
    "faulty": {"import_path": "tests.e2e.answers.faulty_reward:Faulty"},
}
LOOKING = {"lookahead": True, "rewards": REWARDS, "reward_deadline_s": 5}
KEY, KEY_IN_FILE = new_key(), new_key()
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a service of their own come before the one that the others share: two at once crowd a small machine."""
    items.sort(key=lambda item: HERE in item.path.parents and "service" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    """Where services send the spans of requests whose caller wants them traced."""
    with collecting() as collector:
        yield collector


def traced(collector: Collector) -> dict[str, Any]:
    return {"otlp_endpoint": collector.url, "sample_ratio": 0}


@pytest.fixture(scope="session")
def service(collector: Collector) -> Iterator[Service]:
    """One running service for the whole session: the embedded model, two compile replicas, a Redis of its own."""
    with running(
        {
            "http": {"max_body_mib": 1},
            "model": {
                "max_num_seqs": 32,
                "restart_wait_s": 120,
                "lookahead": True,
                "rewards": REWARDS,
                "reward_deadline_s": 5,
                **SMALL_QUEUES,
            },
            # Counted in tests, so that a busy machine must not turn a hit into a miss.
            "redis": {"timeout_ms": 1000, "head_start_ms": 1000},
            "grammar": {"compile_deadline_s": 2},
            "grammars": {"from-settings": {"choice": ["left", "right"]}},
            "telemetry": traced(collector),
        }
    ) as service:
        yield service


@pytest.fixture(scope="module")
def apart(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two ingresses of their own, in front of one model replica, whose model drafts for itself. It has keys, in its settings and in a
    file, and writes its logs as JSON."""
    telemetry = {**traced(collector), "logs": "json"}
    drafting = {"lookahead": True, "draft": {"path": str(EMBEDDED_WEIGHTS)}}
    model = {"max_num_seqs": 32, "restart_wait_s": 120, **drafting}
    file = tmp_path_factory.mktemp("keys") / "keys.yaml"
    file.write_text(entry_text(KEY_IN_FILE, "in-file", ["generate"], 1.0))
    http = {"num_replicas": 2, "max_body_mib": 8, "api_keys": [KEY], "api_keys_file": str(file)}
    with running({"http": http, "model": model, "telemetry": telemetry}) as service:
        yield replace(service, key=KEY)


@pytest.fixture
def keys() -> tuple[str, str]:
    """Of the service that has them: the one in its settings, and the one whose digest is in its file."""
    return KEY, KEY_IN_FILE


@contextmanager
def running(tree: dict[str, dict[str, Any]]) -> Iterator[Service]:
    port = free_port("127.0.0.1")
    settings = parse_settings({**tree, "http": {**tree["http"], "port": port}})
    cluster = LocalCluster(settings, Progress(Console(stderr=True)))
    try:
        cluster.start()
        yield Service(f"http://127.0.0.1:{port}", cluster)
    finally:
        cluster.stop()
