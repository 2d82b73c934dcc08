"""A Ray with Serve for one purpose, on this machine (Ray 2.60)."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray import serve

from deployments.preflight import OBJECT_STORE_MIB

CPUS = 4


@contextmanager
def own_ray() -> Iterator[None]:
    """Ended afterwards, with all that runs in it. Raises OSError, RuntimeError: as Ray does where it cannot start."""
    # Ray opens sockets below its folder, so that the path must be short.
    with tempfile.TemporaryDirectory(prefix="mc-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        try:
            ray.init(
                address="local",
                num_cpus=CPUS,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=OBJECT_STORE_MIB * 2**20,
                _temp_dir=f"{folder}/ray",
            )
            # Nobody asks it over HTTP, and the port may be taken.
            serve.start(proxy_location="Disabled")
            yield
        finally:
            if ray.is_initialized():
                serve.shutdown()
                ray.shutdown()
