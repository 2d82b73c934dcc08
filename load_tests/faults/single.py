"""A service of one replica, whose engine core is killed: requests that it had not begun to answer wait for the next one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import psutil

from deployments.names import APPLICATION, MODEL
from load_tests.errors import BenchFailed
from load_tests.faults.clients import Clients, fitting_letters
from load_tests.faults.waiting import wait_for
from load_tests.reporting.running_service import running_service
from model_service.messages import ReplicaStatus

STREAMING, PLAIN = 3, 2
SINGLE = "the engine core of a single replica is killed"
CORE = "VLLM::EngineCore"


@dataclass(frozen=True)
class Alone:
    """How requests ended, when all clients were answered again, when another engine was there, how many letters answers had, and where the
    seconds of the engine's start went."""

    ends: Mapping[str, int]
    back_s: float | None
    settled_s: float
    letters: int
    restart_s: Mapping[str, float]


@dataclass(frozen=True)
class _Here:
    port: int
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def struck_alone(give_up_s: float) -> Alone:
    with running_service({}) as url:
        here = _Here(httpx.URL(url).port or 80)
        letters = fitting_letters(here, STREAMING, PLAIN)
        with Clients(here, STREAMING, PLAIN, letters) as clients:
            begun = time.monotonic()
            core().kill()
            with suppress(BenchFailed):  # then there is no time after which all were answered
                wait_for(lambda: clients.back_s(begun) is not None, give_up_s, "answers to all clients")
            wait_for(lambda: bool(_status().restarts), give_up_s, "another engine")
            settled_s = time.monotonic() - begun
        restart_s = {part: round(seconds, 2) for part, seconds in _status().restart_s.items()}
    return Alone(clients.ends, clients.back_s(begun), settled_s, letters, restart_s)


def core() -> psutil.Process:
    """The engine core below this process. Raises BenchFailed."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if CORE in " ".join(process.cmdline()):
                return process
    raise BenchFailed("there is no engine core")


def _status() -> ReplicaStatus:
    from ray import serve  # Ray reads the environment when it is imported

    status: ReplicaStatus = serve.get_deployment_handle(MODEL, APPLICATION).status.remote().result(timeout_s=60)
    return status
