"""Waiting for what nothing tells of."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import psutil

from load_tests.errors import BenchFailed

LOOK_S = 0.2


def wait_for(holds: Callable[[], object], seconds: float, what: str) -> None:
    """Look until it holds; meanwhile what is asked may be away.

    Raises:
        BenchFailed: it does not hold within so many seconds; names `what`.
    """
    deadline = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except (httpx.HTTPError, psutil.NoSuchProcess, KeyError, ValueError) as error:
            last = error
        time.sleep(LOOK_S)
    raise BenchFailed(f"waited {seconds:g} s in vain for {what}; last: {last!r}")
