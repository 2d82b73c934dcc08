"""Callers that go on calling, and what becomes of their calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from threading import Event, Lock, Thread

from ray.exceptions import RayActorError
from ray.serve.exceptions import DeploymentUnavailableError

from tests.e2e.service import wait_for
from tests.integration.router.fleet import Fleet

ANSWER_S = 60.0


@dataclass(frozen=True, slots=True)
class Called:
    """`replica` is empty where the call failed because its replica was gone."""

    key: str
    replica: str


class Load:
    """Each caller goes through the keys, one call after the other. Whatever else than an answer or the end of a replica comes of a call
    ends the test."""

    def __init__(self, fleet: Fleet, keys: Sequence[str], callers: int) -> None:
        self._fleet = fleet
        self._keys = cycle(keys)
        self._lock = Lock()
        self._enough = Event()
        self._faults: list[BaseException] = []
        self._callers = [Thread(target=self._call, daemon=True) for _ in range(callers)]
        self.called: list[Called] = []

    def start(self) -> None:
        for caller in self._callers:
            caller.start()

    def stop(self) -> None:
        """Returns when every call has come to its end."""
        self._enough.set()
        for caller in self._callers:
            caller.join(2 * ANSWER_S)
        assert not any(caller.is_alive() for caller in self._callers), "a call is neither answered nor failed"
        assert not self._faults, self._faults

    def homes(self, keys: Sequence[str], seconds: float, apart_from: str = "") -> dict[str, str]:
        """Where each of the keys is answered from now on, by replicas `apart_from` one; fails unless all are in so many seconds."""
        begin = len(self.called)

        def found() -> dict[str, str]:
            homes = {one.key: one.replica for one in self.called[begin:] if one.replica not in ("", apart_from)}
            return homes if set(keys) <= set(homes) else {}

        return wait_for(found, seconds, f"all {len(keys)} keys to be answered")

    def _call(self) -> None:
        try:
            while not self._enough.is_set():
                with self._lock:
                    key = next(self._keys)
                self.called.append(Called(key, self._answered(key)))
        except BaseException as fault:  # noqa: BLE001  # a thread's outermost frame: the test is told
            self._faults.append(fault)

    def _answered(self, key: str) -> str:
        try:
            return str(self._fleet.send(key).result(timeout_s=ANSWER_S))
        except (RayActorError, DeploymentUnavailableError):
            return ""


@contextmanager
def load(fleet: Fleet, keys: Sequence[str], callers: int) -> Iterator[Load]:
    running = Load(fleet, keys, callers)
    running.start()
    try:
        yield running
    finally:
        running.stop()
