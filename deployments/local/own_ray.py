"""A Ray of our own on this machine (Ray 2.60). Ray reads the environment when it is imported: import this only once that is set."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import ray
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from deployments.errors import StartError
from deployments.local.preflight import OBJECT_STORE_MIB
from deployments.names import APPLICATION


class OwnRay:
    """Ends with `stop`; `cpus` are those that it believes in. Ray opens sockets in `folder`, whose path must be short."""

    def __init__(self, folder: Path, cpus: int) -> None:
        self._folder = folder
        self._cpus = cpus

    @property
    def logs(self) -> Path:
        """The folder of its logs."""
        return self._folder / "session_latest" / "logs"

    @property
    def running(self) -> bool:
        """Whether this process is connected to it."""
        return ray.is_initialized()

    def start(self) -> None:
        """Raises StartError."""
        try:
            ray.init(
                address="local",
                num_cpus=self._cpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=OBJECT_STORE_MIB * 2**20,
                _temp_dir=str(self._folder),
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise StartError(f"Ray did not start: {str(error).strip().splitlines()[-1]}") from error

    def delete_application(self) -> None:
        with suppress(RayError, RayServeException):  # it may be dying already
            serve.delete(APPLICATION)

    def stop(self) -> None:
        ray.shutdown()


@contextmanager
def own_serve(cpus: int = 4) -> Iterator[None]:
    """A Ray with Serve, without HTTP, for one purpose; ended afterwards with all that runs in it. Raises StartError."""
    with tempfile.TemporaryDirectory(prefix="mc-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        own = OwnRay(Path(folder) / "ray", cpus)
        try:
            own.start()
            serve.start(proxy_location="Disabled")  # nobody asks it over HTTP, and the port may be taken
            yield
        finally:
            if own.running:
                serve.shutdown()
                own.stop()
