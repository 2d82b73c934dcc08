"""Two ingresses in front of one engine: floods with weights come by both, and the tenants' limits are theirs together; then Redis, through
which they know of each other, is killed while it all goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import psutil

from deployments.names import APPLICATION, INGRESS
from deployments.reporting.report import Row
from load_tests.errors import BenchFailed
from load_tests.front_door.clients.process import client_process
from load_tests.tenants.figures import KILLED, TOGETHER
from load_tests.tenants.idle import family
from load_tests.tenants.limited import LIMITED, visiting
from load_tests.tenants.limits_kept import limit_row
from load_tests.tenants.service import HOST, Tenants, service
from load_tests.tenants.weighted import WEIGHTS, share_rows

INGRESSES = 2
MARK = f"ServeReplica:{APPLICATION}:{INGRESS}"
TENANTS: Tenants = {
    **{name: {"weight": weight} for name, weight in WEIGHTS.items()},
    **{one.what: {"limits": {one.what: one.most}} for one in LIMITED},
}


def ingress_rows(seconds: float) -> Iterator[Row]:
    """Floods for `seconds`, and as long again with Redis killed in the middle."""
    with service(TENANTS, INGRESSES) as (port, keys), ExitStack() as held:
        clients = [held.enter_context(client_process()) for _ in WEIGHTS]
        spread = _Spread(port)
        yield from share_rows(TOGETHER, clients, port, keys, seconds, spread.look)
        yield spread.row()
        killing = _Killing(seconds / 2)
        with visiting(HOST, port, keys) as visited:
            yield from share_rows(KILLED, clients, port, keys, seconds, killing.begin)
        killed_s = killing.killed_s()
        yield {"scenario": KILLED, "redis": httpx.get(f"http://{HOST}:{port}/readyz", timeout=30).json()["redis"]}
        for one in LIMITED:
            yield limit_row(KILLED, one, visited.visits[one.what], killed_s)


class _Spread:
    """How the floods' connections are spread over the ingresses."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._held: list[int] = []

    def look(self) -> None:
        self._held = [_connections(process, self._port) for process in family(MARK)]

    def row(self) -> Row:
        """`held`: connections, `fewest` of which are at one ingress."""
        fewest = min(self._held) if len(self._held) == INGRESSES else 0
        return {"scenario": TOGETHER, "ingresses": len(self._held), "fewest": fewest, "held": sum(self._held)}


class _Killing:
    """Kills Redis so many seconds after it has begun."""

    def __init__(self, after_s: float) -> None:
        self._killed_s: float | None = None
        self._timer = threading.Timer(after_s, self._kill)

    def begin(self) -> None:
        self._timer.start()

    def killed_s(self) -> float:
        """When that was, as `time.perf_counter` has it. Raises BenchFailed: there was none."""
        self._timer.join()
        if self._killed_s is None:
            raise BenchFailed("there was no Redis to kill")
        return self._killed_s

    def _kill(self) -> None:
        for process in family("redis-server"):
            process.kill()
            self._killed_s = time.perf_counter()


def _connections(process: psutil.Process, port: int) -> int:
    held = process.net_connections("tcp")
    return sum(one.status == psutil.CONN_ESTABLISHED and one.laddr.port == port for one in held)
