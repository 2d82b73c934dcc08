"""A clock that tests move."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """Stands still until it is moved."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now
