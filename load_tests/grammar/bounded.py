"""Runs a part of the benchmark in a child that can be killed: a grammar that takes too long or too much ends its child, is reported,
and the others go on in a new one."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from load_tests.errors import BenchFailed, Stuck
from load_tests.grammar.messages import Assignment, Began, Line, Measured, Ready

_ROOT = Path(__file__).resolve().parents[2]
_QUIET: Final = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds of wall clock: until the child is ready, and for each step after that."""

    start_s: float = 180.0
    step_s: float = 120.0


def run_bounded(assignment: Assignment, bounds: Bounds, heard: Callable[[Line], None]) -> list[Measured]:
    """Every case's figures, or the fault of those that ended a child; `heard` is called with each line as it comes.

    Raises:
        BenchFailed: a child ends before it works on any case.
    """
    measured: list[Measured] = []
    while assignment.cases:
        current: str | None = None
        with MeasuringChild(assignment) as child:
            try:
                for line in child.lines(bounds):
                    current = line.case if isinstance(line, Began) else current
                    measured.extend([line] if isinstance(line, Measured) else [])
                    heard(line)
                return measured
            except Stuck as stuck:
                if current is None:
                    raise BenchFailed(f"the measuring process {stuck}: {child.last_words()}") from None
                fault = Measured(current, {"fault": str(stuck)})
        heard(fault)
        measured.append(fault)
        assignment = assignment.after({line.case for line in measured}, fault.case)
    return measured


class MeasuringChild:
    """One child with its assignment; leaving the context kills it."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._resources = ExitStack()

    def __enter__(self) -> MeasuringChild:
        self._errors = self._resources.enter_context(tempfile.TemporaryFile())
        self._process = subprocess.Popen(
            [sys.executable, "-m", "load_tests.grammar.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **_QUIET, "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))},
        )
        self._resources.callback(self._end)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._resources.close()

    def lines(self, bounds: Bounds) -> Iterator[Line]:
        """What the child says, until it has done. Raises Stuck: it says nothing for too long, or ends too early."""
        yield self._next(bounds.start_s) or Ready()
        while (line := self._next(bounds.step_s)) is not None:
            yield line

    def last_words(self) -> str:
        """The end of the child's standard error."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-2000:]

    def _next(self, bound_s: float) -> Line | None:
        try:
            data = self._lines.get(timeout=bound_s)
        except queue.Empty:
            raise Stuck(f"took more than {bound_s:g} s") from None
        if data:
            line: Line = msgspec.json.decode(data, type=Line)
            return line
        if code := self._process.wait():
            raise Stuck(f"ended with code {code}")
        return None

    def _listen(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(msgspec.json.encode(self._assignment))
            self._process.stdin.close()
            for line in self._process.stdout:
                self._lines.put(line)
        except (OSError, ValueError):
            pass  # it has ended, which its exit code will tell
        self._lines.put(b"")

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(BrokenPipeError):
                    pipe.close()
