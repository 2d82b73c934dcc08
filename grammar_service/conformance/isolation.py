"""Work in a process of its own, since native code may hang or crash."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from typing import TypeVar

import msgspec

from grammar_service.errors import CompileFailed, CompileTimeout

T = TypeVar("T")
_CHUNK = 1 << 16


def in_child(work: Callable[[], T], kind: type[T], deadline_s: float) -> T:
    """What `work` returns, which MessagePack must be able to carry, from a forked child that is gone afterwards.

    Raises:
        CompileTimeout: the child was killed at the deadline.
        CompileFailed: it died, or `work` raised.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work_and_exit(work, writer)
    os.close(writer)
    try:
        return msgspec.msgpack.decode(_read(reader, deadline_s), type=kind)
    except msgspec.DecodeError:
        raise CompileFailed("the compiler crashed on the grammar") from None
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _work_and_exit(work: Callable[[], T], writer: int) -> None:
    status = 1
    try:
        with os.fdopen(writer, "wb") as stream:
            stream.write(msgspec.msgpack.encode(work()))
        status = 0
    finally:
        # No exit handlers of the parent: they are not the child's to run.
        os._exit(status)


def _read(reader: int, deadline_s: float) -> bytes:
    """All that comes until the end of the pipe; the deadline counts from the last byte."""
    data = b""
    while select.select([reader], [], [], deadline_s)[0]:
        if not (chunk := os.read(reader, _CHUNK)):
            return data
        data += chunk
    raise CompileTimeout(f"the grammar did not compile within {deadline_s:g} s")
