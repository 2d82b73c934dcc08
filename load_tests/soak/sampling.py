"""What a service has of everything that could run out, looked at once every few seconds."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import psutil

from load_tests.soak.roles import role
from load_tests.soak.shared_memory import memfds_of, used_bytes

MIB = 2**20
MEMORY, FILES = "RSS", "open files"
SHARED, MEMFDS, KEYS, REDIS, OBJECTS, ZOMBIES = "/dev/shm", "memfds", "Redis keys", "Redis memory", "Ray objects", "zombies"


@dataclass(frozen=True, slots=True)
class Sample:
    """`at_s` seconds after the first one, when so many requests had `ended`. `values` by their series: RSS and open files of each role (its
    processes together), and what the service has as a whole; memory in MiB."""

    at_s: float
    ended: int
    values: Mapping[str, float]


class Store(Protocol):
    """A Redis, as its client has it."""

    def info(self, section: str) -> Any: ...

    def dbsize(self) -> Any: ...


class Looker:
    """At all processes below this one. `objects` counts those of Ray."""

    def __init__(self, redis: Store, objects: Callable[[], int]) -> None:
        self._redis = redis
        self._objects = objects

    def look(self) -> dict[str, float]:
        found, roles, memfds = defaultdict[str, float](float, {ZOMBIES: 0.0}), dict[int, str](), dict[int, int]()
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                _add(process, roles, found)
                memfds |= memfds_of(process.pid)
        info = self._redis.info("memory")
        found |= {SHARED: used_bytes() / MIB, MEMFDS: sum(memfds.values()) / MIB}
        whole = {KEYS: self._redis.dbsize(), REDIS: info["used_memory"] / MIB, OBJECTS: self._objects()}
        return {**found, **whole}


class Sampling:
    """Looks once every `period_s` seconds, from the beginning of the block to its end, in a thread."""

    def __init__(self, look: Callable[[], Mapping[str, float]], ended: Callable[[], int], period_s: float) -> None:
        self._look = look
        self._ended = ended
        self._period_s = period_s
        self._samples: list[Sample] = []
        self._over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._go_on)

    def __enter__(self) -> Sequence[Sample]:
        self._thread.start()
        return self._samples

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _go_on(self) -> None:
        started = time.monotonic()
        try:
            while True:
                ended = self._ended()
                self._samples.append(Sample(time.monotonic() - started, ended, self._look()))
                if self._over.wait(self._period_s):
                    return
        except Exception as error:  # noqa: BLE001  # raised at the end of the block
            self._error = error


def _add(process: psutil.Process, roles: dict[int, str], found: dict[str, float]) -> None:
    with process.oneshot():
        if process.status() == psutil.STATUS_ZOMBIE:
            found[ZOMBIES] += 1
            return
        named = roles[process.pid] = role(" ".join(process.cmdline()), roles.get(process.ppid(), ""))
        found[f"{MEMORY}: {named}"] += process.memory_info().rss / MIB
        found[f"{FILES}: {named}"] += process.num_fds()
