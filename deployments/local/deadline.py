"""A limit for calls that have none of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable


def finishes(act: Callable[[], object], within_s: float) -> bool:
    """Calls `act` in a thread; False when it is still busy after `within_s` seconds. It is then left to itself: a thread cannot
    be stopped. What it raises is lost to the caller; the interpreter reports it."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(within_s)
    return not thread.is_alive()
