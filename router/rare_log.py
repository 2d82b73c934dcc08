"""A log for what may go wrong with every request."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

PERIOD_S = 60.0
"""Seconds: often enough to be seen, and no log is filled by what goes wrong a thousand times a second."""


class RareLog:
    """Writes an error with its traceback, and then none for `PERIOD_S`; the next one says how many were left out."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._silent_until = 0.0
        self._left_out = 0

    def error(self, what: str, error: Exception) -> None:
        now = self._clock()
        if now < self._silent_until:
            self._left_out += 1
            return
        more = f" ({self._left_out} more errors since the last one that was logged)" if self._left_out else ""
        self._logger.error("%s%s", what, more, exc_info=error)
        self._silent_until, self._left_out = now + PERIOD_S, 0
