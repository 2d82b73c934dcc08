"""What a service's processes use within the clients' window."""

from __future__ import annotations

from load_tests.front_door.clients.messages import WindowEnded
from load_tests.front_door.processor_time import ProcessorTime, between, machine_s


class Meter:
    """Of one window; `began` and `ended` are for the clients to call."""

    def __init__(self, processor_time: ProcessorTime) -> None:
        self._processor_time = processor_time
        self._before: dict[str, float] = {}
        self._after: dict[str, float] = {}
        self._machine_s = 0.0
        self.window = WindowEnded(0.0, 0.0)

    def began(self) -> None:
        self._before = self._processor_time.read()
        self._machine_s -= machine_s()

    def ended(self, window: WindowEnded) -> None:
        self._machine_s += machine_s()
        self._after = self._processor_time.read()
        self.window = window

    @property
    def used(self) -> dict[str, float]:
        """Seconds by part."""
        return between(self._before, self._after)

    @property
    def foreign_s(self) -> float:
        """Seconds of what is neither the service nor its clients."""
        return max(0.0, self._machine_s - sum(self.used.values()) - self.window.client_s)
