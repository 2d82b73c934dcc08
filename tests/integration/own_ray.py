"""A Ray with Serve for tests that need no service."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import ray
from ray import serve

from deployments.environment import environment


@contextmanager
def own_ray(variables: Mapping[str, str]) -> Iterator[None]:
    """Ended afterwards, with all that runs in it; `variables` are for its processes."""
    # Ray's sockets need a short path.
    with (
        tempfile.TemporaryDirectory(prefix="mc-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        environment(variables, {}),
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
