"""Work in processes of its own, since native code may hang or crash."""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from grammar_service.errors import CompileFailed, CompileTimeout

T = TypeVar("T")
_CHUNK = 1 << 16
PATIENCE = 60
"""How many times its processor time a child may wait for, too."""


@dataclass(slots=True)
class _Child:
    """A running child: its place among the works, the read end of its pipe, and what has come out of that."""

    index: int
    pid: int
    reader: int
    ends_at: float
    data: bytearray = field(default_factory=bytearray)
    is_late: bool = False

    def read(self) -> bool:
        """Whether it has closed its end."""
        chunk = os.read(self.reader, _CHUNK)
        self.data += chunk
        return not chunk

    def end(self) -> None:
        os.close(self.reader)
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self.is_late = self.ends_at <= time.monotonic() or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU)


def in_child(work: Callable[[], T], kind: type[T], deadline_s: float) -> T:
    """What `work` returns, which MessagePack must be able to carry, from a forked child that is gone afterwards.

    The deadline is one of processor time, so that a busy machine refuses nothing that an idle one would not; waiting included, it
    has PATIENCE times as long.

    Raises:
        CompileTimeout: the child was killed at the deadline.
        CompileFailed: it died, or `work` raised.
    """
    _, result = next(in_children([work], kind, deadline_s, 1))
    if isinstance(result, (CompileTimeout, CompileFailed)):
        raise result
    return result


def in_children(
    works: Iterable[Callable[[], T]], kind: type[T], deadline_s: float, at_once: int, memory_bytes: int | None = None
) -> Iterator[tuple[int, T | CompileTimeout | CompileFailed]]:
    """The same for many works, each with its own child and deadline, `at_once` of them at a time: their numbers, and what they return or
    the error that `in_child` raises, as they end. `memory_bytes` bounds what a child may map beyond what it was forked with."""
    waiting = iter(enumerate(works))
    running: dict[int, _Child] = {}
    try:
        while True:
            for index, work in islice(waiting, at_once - len(running)):
                child = _forked(index, work, deadline_s, memory_bytes)
                running[child.reader] = child
            if not running:
                return
            for child in _ended(running):
                del running[child.reader]
                child.end()
                yield child.index, _result(child, kind, deadline_s)
    finally:
        for child in running.values():
            child.end()


def _forked(index: int, work: Callable[[], T], deadline_s: float, memory_bytes: int | None) -> _Child:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _work_and_exit(work, writer, deadline_s, memory_bytes)
    os.close(writer)
    return _Child(index, pid, reader, time.monotonic() + PATIENCE * deadline_s)


def _work_and_exit(work: Callable[[], T], writer: int, deadline_s: float, memory_bytes: int | None) -> None:
    status = 1
    try:
        whole_s = math.ceil(deadline_s)
        resource.setrlimit(resource.RLIMIT_CPU, (whole_s, whole_s + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory_bytes is not None:
            _limit_memory(memory_bytes)
        with os.fdopen(writer, "wb") as stream:
            stream.write(msgspec.msgpack.encode(work()))
        status = 0
    finally:
        # No exit handlers of the parent: they are not the child's to run.
        os._exit(status)


def _limit_memory(beyond_now: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + beyond_now
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _ended(running: dict[int, _Child]) -> list[_Child]:
    """Those that closed their pipe or are over their deadline; waits until something comes or somebody's deadline."""
    left = max(0.0, min(child.ends_at for child in running.values()) - time.monotonic())
    ready = select.select(list(running), [], [], left)[0]
    closed = {reader for reader in ready if running[reader].read()}
    now = time.monotonic()
    return [child for reader, child in running.items() if reader in closed or child.ends_at <= now]


def _result(child: _Child, kind: type[T], deadline_s: float) -> T | CompileTimeout | CompileFailed:
    try:
        return msgspec.msgpack.decode(child.data, type=kind)
    except msgspec.DecodeError:
        if child.is_late:
            return CompileTimeout(f"the grammar did not compile within {deadline_s:g} s")
        return CompileFailed("the compiler crashed on the grammar")
