"""The parent's end of one compile child process."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Protocol

import msgspec

from grammar_service.errors import ArtifactError, MaskcastError
from grammar_service.sandbox.wire import LENGTH_BYTES, Judged, Judging, Payload, Refused, Resolved, Result, Task, body_length, frame

_RESULT_SLACK = 64 * 1024
"""What a result holds besides its payload."""
MOST_VERDICT_BYTES = 4 << 20
"""Of a result other than a payload. The event loop decodes it: 4 MiB take 30 ms at worst."""
_SCHEDULED = 2
"""Of a process's clocks the one that the scheduler keeps, in nanoseconds."""


class ChildDied(MaskcastError):
    """A process of the sandbox ended, or sent something else than a message, before it had answered."""


def _result_type(task: Task) -> type[Payload | Resolved | Judged]:
    if isinstance(task, Judging):
        return Judged
    return Resolved if task.backend is None else Payload


class Origin(Protocol):
    """Where a child comes from, and who can end it."""

    async def reap(self, pid: int) -> None: ...

    def last_words(self) -> str: ...


class CompileChild:
    """A running child; end it with `kill`, which leaves no zombie. `has_tables`: those of the tokenizer's own sequences, see `Order`."""

    def __init__(
        self,
        pid: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        origin: Origin,
        output_limit_bytes: int,
        has_tables: bool = False,
    ) -> None:
        self.pid = pid
        self.has_tables = has_tables
        self._reader = reader
        self._writer = writer
        self._origin = origin
        self._frame_limit = output_limit_bytes + _RESULT_SLACK

    @property
    def is_alive(self) -> bool:
        """No end of the connection has been seen, orderly or not. It may be dying all the same: a process closes its files last."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    def processor_s(self) -> float:
        """What it has had of processors so far, in seconds; 0.0 once it has ended. (Linux: clock_getcpuclockid(3).)"""
        try:
            return time.clock_gettime(~self.pid << 3 | _SCHEDULED)
        except OSError:
            return 0.0

    def is_runnable(self) -> bool:
        """Whether it runs or waits for a processor: process state R, see proc_pid_stat(5)."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "R"

    async def run(self, task: Task) -> Result:
        """The child's answer, of the type that the task asks for. Raises ChildDied. Once this is cancelled the child must be killed: its
        answer is still to come."""
        kind = _result_type(task)
        limit = self._frame_limit if kind is Payload else min(self._frame_limit, MOST_VERDICT_BYTES)
        try:
            self._writer.write(frame(task))
            await self._writer.drain()
            length = body_length(await self._reader.readexactly(LENGTH_BYTES), limit)
            answer: Result = msgspec.msgpack.decode(await self._reader.readexactly(length), type=kind | Refused)
            return answer
        except (OSError, EOFError, ValueError, ArtifactError) as error:
            raise ChildDied(str(error)) from None

    async def kill(self) -> None:
        """End the process and have it reaped."""
        self._writer.close()
        await self._origin.reap(self.pid)

    def last_words(self) -> str:
        """The end of its standard error."""
        return self._origin.last_words()
