"""Bounds on what loading a grammar may cost: llguidance compiles again in the engine's own process, where no sandbox is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from grammar_service.errors import GrammarTooLarge
from grammar_service.own_memory import resident_bytes

MAX_LOAD_S = 0.5
"""Processor time. An engine that loads a grammar decodes nothing meanwhile."""
MAX_LOAD_BYTES = 256 * 1024 * 1024
MAX_TEXT = 8192
"""Bytes of one text in a grammar, a name, a value, or a literal: a mask inside of one takes 0.3 us for each, and where more than 100,000
follow the library (1.7.6) has no mask at all."""


@contextmanager
def bounded_load() -> Iterator[None]:
    """Measure this thread's processor time and the process's resident memory, which must still be held at the end.

    It stops nothing: run it where a deadline and a memory limit hold.

    Raises:
        GrammarTooLarge: afterwards, where either was over its bound.
    """
    bytes_before, started = resident_bytes(), time.thread_time()
    yield
    seconds, grown = time.thread_time() - started, resident_bytes() - bytes_before
    if grown > MAX_LOAD_BYTES:
        raise GrammarTooLarge(f"the grammar takes {grown >> 20} MiB of an engine's memory, the limit is {MAX_LOAD_BYTES >> 20} MiB")
    if seconds > MAX_LOAD_S:
        raise GrammarTooLarge(f"loading the grammar takes {seconds:.1f} s of an engine, the limit is {MAX_LOAD_S:g} s")
