"""The whole service on this machine: a Ray cluster of its own, Redis, the application; nothing is left of it afterwards."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from deployments.config import Settings
from deployments.local.environment import defaults, environment
from deployments.local.ports import local_url
from deployments.local.preflight import preflight
from deployments.local.processes import ProcessTree, finishes
from deployments.local.progress import Progress
from deployments.local.redis_server import RedisServer

if TYPE_CHECKING:
    from deployments.local.own_ray import OwnRay
    from deployments.local.rollout import Builder

# Ray opens UNIX sockets below its folder, and their paths must stay under 108 bytes.
LONGEST_TEMPORARY_FOLDER = 24
PATIENCE_S = 5.0
DELETE_TIMEOUT_S = 45.0
SHUTDOWN_TIMEOUT_S = 20.0


class LocalCluster:
    """`stop()` may be called at any point of a start that failed or was interrupted.

    Signals must not raise while it stops. Use it in the main thread: Ray and Redis die with the thread that started them.
    """

    def __init__(
        self, settings: Settings, progress: Progress, after_ray: Callable[[], None] = lambda: None, builder: Builder | None = None
    ) -> None:
        """`after_ray` is called once Ray is up, to take signal handlers back from it. `builder` makes another application of the settings
        than `deployments.app.build`."""
        self._builder = builder
        self._settings = settings
        self._progress = progress
        self._after_ray = after_ray
        self._tree = ProcessTree()
        self._redis: RedisServer | None = None
        self._resources = ExitStack()

    @property
    def url(self) -> str:
        return local_url(self._settings.http.host, self._settings.http.port)

    def start(self) -> None:
        """Returns when the application answers.

        Raises:
            StartError: the machine or a deployment is at fault; call `stop()` all the same.
        """
        own_redis = self._settings.redis.url is None
        preflight(self._settings, own_redis=own_redis)
        folder = self._make_folder()
        self._resources.enter_context(environment(defaults(self._settings, Path.home()), {"TMPDIR": str(folder)}))
        self._resources.callback(self._tree.end, PATIENCE_S)
        self._tree.watch()
        if own_redis:
            self._start_redis(folder)
        # Ray reads the environment when it is imported.
        from deployments.app import build
        from deployments.local.own_ray import OwnRay
        from deployments.local.rollout import roll_out

        ray = OwnRay(folder, max(os.cpu_count() or 1, cpus_needed(self._settings)))
        self._resources.callback(self._stop_ray, ray)
        with self._progress.step("starting Ray"):
            ray.start()
            self._after_ray()
        # Ray keeps what its processes are started with, and shows it to whoever asks.
        roll_out(self._settings.with_secrets_in(folder / "secrets.yaml"), self._progress, ray.logs, self._builder or build)
        self._progress.say(f"Ray jobs of this user join it after: . {ray.access.shell_file}")

    def stop(self) -> None:
        """Returns when no process, port, shared memory or folder of the service is left."""
        self._resources.close()

    def fault(self) -> str | None:
        """Why the service cannot go on, None while it can; a Redis that has died is started again."""
        if self._redis is not None and not self._redis.running:
            self._progress.say("Redis has ended: starting it again")
            self.restart_redis()
        dead = {"raylet", "gcs_server"} - self._tree.running()
        return f"Ray has died ({', '.join(sorted(dead))})" if dead else None

    def restart_redis(self) -> None:
        """Replaces our Redis, dead or alive, by an empty one at the same address with the same password."""
        if self._redis is None:
            raise RuntimeError("this cluster does not run a Redis of its own")
        self._redis.stop()
        self._redis.start()

    def _make_folder(self) -> Path:
        parent = tempfile.gettempdir()
        if len(parent) > LONGEST_TEMPORARY_FOLDER:
            parent = "/tmp"  # the short path is the point; mkdtemp makes the folder safely
        folder = Path(tempfile.mkdtemp(prefix="mc-", dir=parent))
        self._resources.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _start_redis(self, folder: Path) -> None:
        redis = self._redis = RedisServer(parent=folder)
        self._resources.callback(redis.stop)
        redis.start()
        self._settings = self._settings.model_copy(
            update={
                "redis": self._settings.redis.model_copy(update={"url": redis.url, "password": redis.password}),
                # The cache ends with this run, so its key can be this run's own.
                "artifact_secret": self._settings.artifact_secret or SecretStr(secrets.token_hex(32)),
            }
        )

    def _stop_ray(self, ray: OwnRay) -> None:
        if not ray.running:
            ray.stop()
            return
        with self._progress.step("stopping"):
            # The replicas close in order; `stop` ends the rest; whatever neither has ended, the process tree will.
            if self.fault() is None and not finishes(ray.delete_application, DELETE_TIMEOUT_S):
                self._progress.say("the application does not stop by itself: ending it")
            finishes(ray.stop, SHUTDOWN_TIMEOUT_S)


def cpus_needed(settings: Settings) -> int:
    """CPUs that Ray must believe in for every replica to find its place."""
    model, grammar = settings.model, settings.grammar
    workers = model.num_replicas * model.tensor_parallel_size * model.cpus_per_worker
    return math.ceil(workers + grammar.compile_replicas * grammar.cpus_per_compiler) + 1
