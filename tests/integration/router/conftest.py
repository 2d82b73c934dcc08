from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator

import pytest
import ray
from ray import serve

from deployments.environment import environment


@pytest.fixture(scope="package")
def ray_serve() -> Iterator[None]:
    """A Ray of its own for the tests here."""
    # Ray's sockets need a short path.
    with (
        tempfile.TemporaryDirectory(prefix="mc-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        environment({"RAY_USAGE_STATS_ENABLED": "0"}, {}),
    ):
        ray.init(
            address="local",
            num_cpus=4,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=128 * 2**20,
            _temp_dir=folder,
        )
        try:
            yield
        finally:
            serve.shutdown()
            ray.shutdown()
