"""The application on a Ray cluster that somebody else runs (RAY_ADDRESS)."""

from __future__ import annotations

import logging
from contextlib import ExitStack

import ray
from ray import serve
from ray.exceptions import RayError

from deployments.config import Settings
from deployments.errors import StartError
from deployments.local.ports import local_url
from deployments.local.progress import Progress
from deployments.local.rollout import roll_out
from deployments.names import APPLICATION


class AttachedCluster:
    """Adds our application to the cluster and takes only that away again.

    Starts no Redis: one on this machine would be out of reach of the cluster's nodes; set redis.url for a shared cache.
    """

    def __init__(self, settings: Settings, progress: Progress, address: str) -> None:
        self._settings = settings
        self._progress = progress
        self._address = address
        self._resources = ExitStack()

    @property
    def url(self) -> str:
        return local_url(self._settings.http.host, self._settings.http.port)

    def start(self) -> None:
        """Returns when the application answers. Raises StartError; call `stop()` all the same."""
        with self._progress.step(f"connecting to Ray at {self._address}"):
            self._resources.callback(ray.shutdown)
            try:
                ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, RuntimeError, ValueError, RayError) as error:
                advice = "check RAY_ADDRESS, and RAY_AUTH_MODE and the token where the cluster asks for one"
                raise StartError(f"cannot connect to Ray at {self._address}: {advice}") from error
        self._resources.callback(self._delete_application)
        roll_out(self._settings, self._progress, None)

    def stop(self) -> None:
        self._resources.close()

    def fault(self) -> str | None:
        return None if ray.is_initialized() else "the connection to Ray is lost"

    def _delete_application(self) -> None:
        with self._progress.step("deleting the application"):
            serve.delete(APPLICATION)
