"""A Ray of our own on this machine (Ray 2.60). Ray reads the environment when it is imported: import this only once that is set."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import ray
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from deployments.errors import StartError
from deployments.local.environment import environment
from deployments.local.preflight import OBJECT_STORE_MIB
from deployments.local.ray_access import RayAccess
from deployments.local.replica_logs import last_lines_of_gcs
from deployments.names import APPLICATION


class OwnRay:
    """Ends with `stop`; `cpus` and `gpus` are those that it believes in, None: that it finds. It listens on the loopback address alone, for
    whoever knows the token in its `access`. `folder` is one that only this user may enter, and its path must be short, since Ray opens
    sockets below it."""

    def __init__(self, folder: Path, cpus: int, gpus: int | None = None) -> None:
        self.access = RayAccess(folder)
        # Below it, because Ray opens its own folder to all users.
        self._folder = folder / "ray"
        self._cpus = cpus
        self._gpus = gpus
        self._resources = ExitStack()

    @property
    def logs(self) -> Path:
        """The folder of its logs."""
        return self._folder / "session_latest" / "logs"

    @property
    def running(self) -> bool:
        """Whether this process is connected to it."""
        return ray.is_initialized()

    def start(self) -> None:
        """Raises StartError; call `stop` all the same. Until then the environment has what lets Ray's processes know each other."""
        self._resources.enter_context(environment({}, self.access.make()))
        self.access.apply()
        try:
            ray.init(
                address="local",
                num_cpus=self._cpus,
                num_gpus=self._gpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=OBJECT_STORE_MIB * 2**20,
                _temp_dir=str(self._folder),
            )
        except (OSError, RuntimeError, ValueError) as error:
            told = [f"Ray did not start: {str(error).strip().splitlines()[-1]}", *last_lines_of_gcs(self.logs)]
            raise StartError("\n".join(told)) from error
        self.access.publish(ray.get_runtime_context().gcs_address)

    def delete_application(self) -> None:
        with suppress(RayError, RayServeException):  # it may be dying already
            serve.delete(APPLICATION)

    def stop(self) -> None:
        ray.shutdown()
        self._resources.close()


@contextmanager
def own_serve(cpus: int = 4, gpus: int | None = None) -> Iterator[None]:
    """A Ray with Serve, without HTTP, for one purpose; ended afterwards with all that runs in it. Raises StartError."""
    with tempfile.TemporaryDirectory(prefix="mc-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        own = OwnRay(Path(folder), cpus, gpus)
        try:
            own.start()
            serve.start(proxy_location="Disabled")  # nobody asks it over HTTP, and the port may be taken
            yield
        finally:
            if own.running:
                serve.shutdown()
            own.stop()
