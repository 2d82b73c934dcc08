"""A mask broadcaster in a process of its own, without Ray: forked from one that has imported all that it needs, which takes seconds."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import psutil

from model_service.masks.broadcaster import MaskBroadcaster
from model_service.masks.engine_requests import EngineRequests
from tests.waiting import until

_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])


class RunningBroadcaster:
    """It listens."""

    def __init__(self, name: str) -> None:
        self._connection, theirs = _PROCESSES.Pipe()
        self._process = _PROCESSES.Process(target=_serve, args=(name, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.totals()

    def totals(self) -> dict[str, int]:
        """`MaskTotals`, and the engines and requests that there are."""
        self._connection.send(None)
        totals: dict[str, int] = self._connection.recv()
        return totals

    def stop(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        until(lambda: psutil.Process(self._pid).status() == psutil.STATUS_STOPPED)

    def resume(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def kill(self) -> None:
        """It may be dead already."""
        if not self._connection.closed:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._connection.close()

    @property
    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid


@contextmanager
def running_broadcaster(name: str) -> Iterator[RunningBroadcaster]:
    broadcaster = RunningBroadcaster(name)
    try:
        yield broadcaster
    finally:
        broadcaster.kill()


def _serve(name: str, connection: Connection[Any, Any]) -> None:
    """Answers whatever comes by `connection` with what it has done so far, until that is closed."""
    logging.basicConfig(level=logging.INFO)
    broadcaster = MaskBroadcaster(name, 64 << 20)
    broadcaster.start()
    with suppress(EOFError):
        while True:
            connection.recv()
            requests = sum(len(found._requests) for found in gc.get_objects() if isinstance(found, EngineRequests))
            connection.send({**asdict(broadcaster.totals), "engines": broadcaster.engines, "requests": requests})
    broadcaster.close()
