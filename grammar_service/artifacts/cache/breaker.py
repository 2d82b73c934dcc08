"""A circuit breaker: stops asking a server that keeps failing, and asks again with one probe at a time."""

from __future__ import annotations

from collections.abc import Callable


class CircuitBreaker:
    """Closed until `failures` in a row; then open for `cooldown_s`; then one call may probe: it closes or opens again."""

    def __init__(self, clock: Callable[[], float], failures: int = 3, cooldown_s: float = 5.0) -> None:
        self._clock = clock
        self._limit = failures
        self._cooldown_s = cooldown_s
        self._failures = 0
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self._limit

    def admits(self) -> bool:
        """Whether a call may go out now; a True while open is the one probe of this cool-down."""
        if not self.is_open:
            return True
        if self._clock() < self._retry_at:
            return False
        self._retry_at = self._clock() + self._cooldown_s
        return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        if self.is_open:
            self._retry_at = self._clock() + self._cooldown_s
