"""The mask broadcaster of a node as a Ray actor (Ray 2.60), and a replica's hold on it.

Ray places it, restarts it when it dies, and is asked for it by its name; masks go by the node's memory, and no call to Ray stands between a
step and its masks.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from deployments.telemetry.metrics import MaskMetrics
from grammar_service.own_memory import resident_bytes
from model_service.hang_watch import HangWatch, Look, main_threads
from model_service.loaded_grammars import max_bytes_in_use
from model_service.masks.broadcaster import MaskBroadcaster

NAMESPACE = "maskcast"
IDLE_S = 60.0
WATCH_PERIOD_S = 2.0
GROWTH_FACTOR = 2
"""It may grow by this many times what grammars in use may take, since lexer states and texts of requests are not counted there."""
HANG_S = 15.0
PATIENCE_S = 5.0
"""For an actor that is asked for; nobody is waiting for its masks yet."""
_log = logging.getLogger(__name__)


class BroadcasterActor:
    """Ends itself when no engine has been connected, and no replica has wanted it, for `idle_s` seconds. Where it has grown by more than
    `max_growth_bytes` it ends as well, and Ray starts it anew: meanwhile engines fill their masks, and end the requests whose grammars take
    the memory."""

    def __init__(self, socket_name: str, application: str, idle_s: float, grammar_bytes: int, max_growth_bytes: int) -> None:
        self._idle_s = idle_s
        self._max_bytes = resident_bytes() + max_growth_bytes
        self._broadcaster = MaskBroadcaster(socket_name, grammar_bytes)
        self._broadcaster.start()
        self._metrics = MaskMetrics(application)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def want(self) -> int:
        """The number of its process, for those of its node."""
        self._broadcaster.want()
        return os.getpid()

    def totals(self) -> dict[str, int]:
        """`MaskTotals`, and how many engines are connected."""
        return {**asdict(self._broadcaster.totals), "engines": self._broadcaster.engines}

    def _watch(self) -> None:
        period = threading.Event()
        while self._broadcaster.idle_s() < self._idle_s:
            self._metrics.update(asdict(self._broadcaster.totals))
            period.wait(WATCH_PERIOD_S)
            if resident_bytes() > self._max_bytes:
                _log.error("the mask broadcaster takes more than %d MiB: it ends, and another one starts", self._max_bytes >> 20)
                os._exit(1)
        # `exit_actor` is for the thread of a method, and none of them is called any more.
        ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


@cache
def _actor_class() -> Any:
    """Made once: Ray keeps 13 KB of each one that it makes (`_ActorClassMethodMetadata`), for as long as the process lives."""
    return ray.remote(BroadcasterActor)


class NodeMasks:
    """One replica's. The broadcaster is that of the application on this node; `grammar_bytes`: of the grammars that stay loaded in it.
    One that answers nothing for `hang_s` is killed (`hang_watch`), and Ray starts another one: engines fill their masks themselves
    meanwhile."""

    def __init__(self, application: str, grammar_bytes: int, idle_s: float = IDLE_S, hang_s: float = HANG_S) -> None:
        self._application = application
        self._grammar_bytes = grammar_bytes
        self._max_growth_bytes = GROWTH_FACTOR * max_bytes_in_use(grammar_bytes)
        self._idle_s = idle_s
        self._node = ray.get_runtime_context().get_node_id()
        self._wanting: asyncio.Task[None] | None = None
        self._hang_s = hang_s
        self._watch = HangWatch(hang_s)
        self.process: int | None = None
        """Its number, where it has answered."""
        self._answers = 0
        self.name = f"masks-{application}-{self._node}"

    @property
    def socket_name(self) -> str:
        """Short enough for a socket, whatever the application's name."""
        return f"maskcast-masks-{hashlib.blake2b(self.name.encode(), digest_size=16).hexdigest()}"

    def keep(self) -> None:
        """Say that it is wanted, on the event loop, and have it back where it has ended or hangs. Does not wait; is for every second or
        two."""
        if self.process is not None:
            look = Look(True, self._answers, main_threads([self.process]))
            if look.threads and self._watch.hangs(look, time.monotonic()):
                self._kill(self.process)
        if self._wanting is None or self._wanting.done():
            self._wanting = asyncio.get_running_loop().create_task(self.want())

    async def want(self) -> None:
        """The same, and wait a while. Without it, engines fill their masks themselves."""
        try:
            await asyncio.wait_for(self._wanted(), PATIENCE_S)
        except (RayError, TimeoutError, ValueError) as error:
            _log.warning("there is no mask broadcaster yet: %s", str(error) or type(error).__name__)

    async def _wanted(self) -> None:
        try:
            process = await self.actor().want.remote()
        except ray.exceptions.ActorDiedError:
            # It was just about to end.
            process = await self.actor().want.remote()
        self.process = process
        self._answers += 1

    def _kill(self, process: int) -> None:
        _log.error("the mask broadcaster answers nothing: its process is killed, and another one starts")
        self.process, self._watch = None, HangWatch(self._hang_s)
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)

    def actor(self) -> Any:
        """The actor's handle; it is started where there is none."""
        return (
            _actor_class()
            .options(
                name=self.name,
                namespace=NAMESPACE,
                get_if_exists=True,
                lifetime="detached",
                num_cpus=0,
                max_restarts=-1,
                enable_task_events=False,  # Ray's GCS would remember each `want`, as it remembers no call of Serve's actors
                scheduling_strategy=NodeAffinitySchedulingStrategy(self._node, soft=False),
            )
            .remote(self.socket_name, self._application, self._idle_s, self._grammar_bytes, self._max_growth_bytes)
        )
