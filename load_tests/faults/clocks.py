"""Nodes with wall clocks of their own that can be set: a library of a few lines, built here, which is preloaded into all their processes.
Clocks that do not run backwards are left alone, as they are when a machine's time is set."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from load_tests.errors import BenchFailed

SOURCE = Path(__file__).with_name("wall_clock.c")
APART_S = 60.0
_SECONDS = struct.Struct("=q")


def why_not() -> str:
    """Why there can be none here; empty: there can."""
    return "" if shutil.which("cc") and sys.platform == "linux" else "there is no C compiler (cc)"


class Clocks:
    """One for each node, in files of the folder. Raises BenchFailed: the library cannot be built."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._library = folder / "wall_clock.so"
        command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE), "-ldl", "-lpthread"]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise BenchFailed(built.stderr)

    def environment(self, node: str) -> Mapping[str, str]:
        """Of all processes of the node."""
        file = self._file(node)
        if not file.exists():
            file.write_bytes(_SECONDS.pack(0))
        return {"LD_PRELOAD": str(self._library), "RAY_LD_PRELOAD_ON_WORKERS": "1", "WALL_CLOCK": str(file)}

    def set(self, node: str, by_s: int) -> None:
        """So many seconds ahead of the machine's, or behind; for all processes at once. Raises BenchFailed: none notices."""
        with self._file(node).open("r+b") as file:  # in place: it is mapped
            file.write(_SECONDS.pack(by_s))
        if abs(self._told(node) - time.time() - by_s) > APART_S:
            raise BenchFailed(f"the clock of {node} cannot be set")

    def _told(self, node: str) -> float:
        command = [sys.executable, "-S", "-c", "import time; print(time.time())"]
        done = subprocess.run(command, env=dict(self.environment(node)), capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchFailed(done.stderr)
        return float(done.stdout)

    def _file(self, node: str) -> Path:
        return self._folder / f"{node}.clock"
