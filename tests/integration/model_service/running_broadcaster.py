"""A mask broadcaster in a process of its own, without Ray: `python -m tests.integration.model_service.running_broadcaster NAME`.

It says a line when it listens, and answers each line on its standard input with what it has done so far.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model_service.masks.broadcaster import MaskBroadcaster
from model_service.masks.engine_requests import EngineRequests

_ROOT = Path(__file__).resolve().parents[3]


class RunningBroadcaster:
    def __init__(self, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, name], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "listening"

    def totals(self) -> dict[str, int]:
        """`MaskTotals`, and the engines and requests that there are."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        totals: dict[str, int] = json.loads(self._line())
        return totals

    def stop(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def running_broadcaster(name: str) -> Iterator[RunningBroadcaster]:
    broadcaster = RunningBroadcaster(name)
    try:
        yield broadcaster
    finally:
        broadcaster.kill()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    broadcaster = MaskBroadcaster(sys.argv[1])
    broadcaster.start()
    print("listening", flush=True)
    for _ in sys.stdin:
        requests = sum(len(found._requests) for found in gc.get_objects() if isinstance(found, EngineRequests))
        print(json.dumps({**broadcaster.totals.as_dict(), "engines": broadcaster.engines, "requests": requests}), flush=True)
    broadcaster.close()


if __name__ == "__main__":
    main()
