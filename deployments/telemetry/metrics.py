"""The metrics of the service: every name that is ours is given here.

Every process reports to the Ray agent of its node (Ray 2.60: `ray.util.metrics`), vLLM's engines included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from ray.util.metrics import Counter, Gauge, Histogram

from model_service.messages import Endpoint, ReplicaStatus

SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]


class RequestMetrics:
    def __init__(self) -> None:
        self._requests = Counter(
            "maskcast_requests", "Requests answered, by endpoint, status and tenant.", ("endpoint", "status", "tenant")
        )
        self._seconds = Histogram("maskcast_request_seconds", "Seconds from the request to its last byte.", SECONDS, ("endpoint",))

    def finished(self, endpoint: Endpoint, status: int, seconds: float, tenant: str) -> None:
        """`tenant` is the name of a key, empty where none was right or none is needed."""
        self._requests.inc(1, {"endpoint": endpoint, "status": str(int(status)), "tenant": tenant})
        self._seconds.observe(seconds, {"endpoint": endpoint})


class CheckMetrics:
    """Counts what happens to answers that are checked when they are finished."""

    def __init__(self) -> None:
        self._counter = Counter("maskcast_answer_checks", "Answers that were checked, asked for again, and given up.", ("event",))

    def count(self, event: Literal["checked", "retried", "failed"], number: int) -> None:
        if number:
            self._counter.inc(number, {"event": event})


class _Growth:
    """By how much counters that only grow have grown since they were last seen."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, counters: Mapping[str, int]) -> dict[str, int]:
        grown = {name: value - self._seen.get(name, 0) for name, value in counters.items()}
        self._seen.update(counters)
        return {name: more for name, more in grown.items() if more > 0}


class GrammarMetrics:
    """Publishes the grammar counters of one process, which only grow, as one metric with their names as labels."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._counter = Counter("maskcast_grammar_events", "Grammar cache and compile events.", ("component", "event"))
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        for event, more in self._growth.of(counters).items():
            self._counter.inc(more, {"component": self._component, "event": event})


class JumpMetrics:
    """Publishes what a replica's engine has jumped over; the mean segment is its tokens by its segments."""

    def __init__(self, deployment: str) -> None:
        self._labels = {"deployment": deployment}
        self._counters = {
            "forced_tokens": Counter("maskcast_forced_tokens", "Output tokens that a grammar forced.", ("deployment",)),
            "forced_segments": Counter("maskcast_forced_segments", "Runs of forced tokens, each computed in one forward.", ("deployment",)),
            "steps_saved": Counter("maskcast_steps_saved", "Forwards that requests did not need, by their forced tokens.", ("deployment",)),
        }
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        """Raises KeyError for a counter that is not one of these."""
        for name, more in self._growth.of(counters).items():
            self._counters[name].inc(more, self._labels)


class LookaheadMetrics:
    """Publishes what a replica's look-aheads have come to, as one metric with the counters' names as labels."""

    def __init__(self, deployment: str) -> None:
        self._deployment = deployment
        self._counter = Counter("maskcast_lookahead", "Answers that looked ahead, and what they came to.", ("deployment", "counted"))
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        for name, more in self._growth.of(counters).items():
            self._counter.inc(more, {"deployment": self._deployment, "counted": name})


class EngineMetrics:
    """Publishes what one replica's engine core counts of its steps, and what it holds."""

    _COUNTED: ClassVar[dict[str, str]] = {
        "steps": "Steps that the engine has computed.",
        "step_us": "Microseconds that they took.",
        "mask_us": "Microseconds of these that went into masks.",
        "masked_steps": "Steps in which a grammar masked anything.",
        "mask_rows": "Mask rows of these steps.",
        "distinct_mask_rows": "Different mask rows of each of these steps, added up; 0 unless model.count_mask_rows is set.",
        "grammars_loaded": "Grammars that the engine had to load, from their tables or by compiling their recipe.",
    }
    _RESTARTS = "Engines that ended, and another one took their place."

    def __init__(self, deployment: str, replica: str) -> None:
        self._labels = {"deployment": deployment, "replica": replica}
        names = tuple(self._labels)
        told = {**self._COUNTED, "restarts": self._RESTARTS}
        self._counters = {name: Counter(f"maskcast_engine_{name}", text, names) for name, text in told.items()}
        self._resident = Gauge("maskcast_engine_grammars_resident", "Grammars that the engine holds.", names)
        self._running = Gauge("maskcast_engine_running", "Requests that the engine has accepted and not yet finished.", names)
        self._growth = _Growth()

    def update(self, status: ReplicaStatus) -> None:
        counted = {name: getattr(status.core, name) for name in self._COUNTED}
        for name, more in self._growth.of({**counted, "restarts": status.restarts}).items():
            self._counters[name].inc(more, self._labels)
        self._resident.set(status.core.grammars_resident, self._labels)
        self._running.set(status.running, self._labels)


class MaskMetrics:
    """Publishes what a node's mask broadcaster has done."""

    def __init__(self, application: str) -> None:
        self._labels = {"application": application}
        self._counters = {
            name: Counter(f"maskcast_mask_{name}", text, ("application",))
            for name, text in {
                "frames": "Steps whose masks were published.",
                "rows": "Masks in them.",
                "late": "Frames that engines did not get in time, and filled themselves.",
                "frame_bytes": "Bytes of the frames.",
                "naive_bytes": "Bytes that the same masks would have had as rows.",
                "refused": "Engines that were sent away for what they said.",
            }.items()
        }
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        """Raises KeyError for a counter that is not one of these."""
        for name, more in self._growth.of(counters).items():
            self._counters[name].inc(more, self._labels)
