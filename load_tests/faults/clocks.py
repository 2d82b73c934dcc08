"""Nodes with wall clocks of their own that can be set: libfaketime, which reads its file anew once a second. Clocks that do not run
backwards are left alone, as they are when a machine's time is set."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from load_tests.errors import BenchFailed
from load_tests.faults.waiting import wait_for

PLACES = ("usr/lib/*/faketime/libfaketimeMT.so.1", "usr/lib*/faketime/libfaketimeMT.so.1")
SET_S, APART_S = 10.0, 60.0


def library() -> Path | None:
    """Where Debian's package libfaketime, and others, have put it."""
    return next((found for place in PLACES for found in sorted(Path("/").glob(place))), None)


class Clocks:
    """One for each node, in files of the folder."""

    def __init__(self, folder: Path, faketime: Path) -> None:
        self._folder = folder
        self._faketime = faketime

    def environment(self, node: str) -> Mapping[str, str]:
        """Of all processes of the node."""
        file = self._file(node)
        if not file.exists():
            file.write_text("+0\n")
        return {
            "LD_PRELOAD": str(self._faketime),
            "RAY_LD_PRELOAD_ON_WORKERS": "1",
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",
        }

    def set(self, node: str, by_s: int) -> None:
        """So many seconds ahead of the machine's, or behind. Raises BenchFailed: no process would notice."""
        self._file(node).write_text(f"{by_s:+d}\n")
        wait_for(lambda: abs(self._told(node) - time.time() - by_s) < APART_S, SET_S, f"a clock that is {by_s:+d} s apart")

    def _told(self, node: str) -> float:
        command = [sys.executable, "-S", "-c", "import time; print(time.time())"]
        done = subprocess.run(command, env=dict(self.environment(node)), capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchFailed(f"nothing runs with libfaketime here: {done.stderr}")
        return float(done.stdout)

    def _file(self, node: str) -> Path:
        return self._folder / f"{node}.clock"
