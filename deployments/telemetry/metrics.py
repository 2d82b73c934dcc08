"""The metrics of the service, as far as it counts itself: what `table` lists, and nothing else.

Every process reports to the Ray agent of its node (Ray 2.60: `ray.util.metrics`), vLLM's engines included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from ray.util.metrics import Counter, Gauge, Histogram

from deployments.telemetry.table import METRICS, PREFIX
from model_service.core_figures import DRAFT_SOURCES
from model_service.messages import ReplicaStatus

SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
SHORT_SECONDS = [0.001, 0.0025, 0.005, *SECONDS[:-2]]


def _counter(name: str) -> Counter:
    """Of the table, by its name without our prefix. Raises KeyError: it has none of that name."""
    row = METRICS[PREFIX + name]
    return Counter(row.name, row.meaning, row.labels)


def _gauge(name: str) -> Gauge:
    row = METRICS[PREFIX + name]
    return Gauge(row.name, row.meaning, row.labels)


class RequestMetrics:
    def __init__(self) -> None:
        row = METRICS[f"{PREFIX}request_seconds"]
        self._requests = _counter("requests")
        self._seconds = Histogram(row.name, row.meaning, SECONDS, row.labels)

    def finished(self, endpoint: str, status: int, seconds: float, tenant: str) -> None:
        """`tenant` is the name of a key, empty where none was right or none is needed."""
        self._requests.inc(1, {"endpoint": endpoint, "status": str(int(status)), "tenant": tenant})
        self._seconds.observe(seconds, {"endpoint": endpoint})


class CheckMetrics:
    """Counts what happens to answers that are checked when they are finished."""

    def __init__(self) -> None:
        self._counter = _counter("answer_checks")

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
        self._counter = _counter("grammar_events")
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        for event, more in self._growth.of(counters).items():
            self._counter.inc(more, {"component": self._component, "event": event})


class CompileMetrics:
    """The times of a compile replica (`grammar_service.compiler.counters.CompileTimes`)."""

    def __init__(self) -> None:
        rows = {name: METRICS[PREFIX + name] for name in ("grammar_seconds", "compile_queue_seconds", "compile_seconds", "load_seconds")}
        self._seconds = {name: Histogram(row.name, row.meaning, SHORT_SECONDS, row.labels) for name, row in rows.items()}

    def answered(self, tier: str, backend: str, seconds: float) -> None:
        self._seconds["grammar_seconds"].observe(seconds, {"tier": tier, "backend": backend})

    def waited(self, backend: str, seconds: float) -> None:
        self._seconds["compile_queue_seconds"].observe(seconds, {"backend": backend})

    def compiled(self, backend: str, compile_s: float, load_s: float) -> None:
        self._seconds["compile_seconds"].observe(compile_s, {"backend": backend})
        self._seconds["load_seconds"].observe(load_s, {"backend": backend})


class JumpMetrics:
    """Publishes what a replica's engine has jumped over; the mean segment is its tokens by its segments."""

    def __init__(self, deployment: str) -> None:
        self._labels = {"deployment": deployment}
        self._counters = {name: _counter(name) for name in ("forced_tokens", "forced_segments", "steps_saved")}
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        """Raises KeyError for a counter that is not one of these."""
        for name, more in self._growth.of(counters).items():
            self._counters[name].inc(more, self._labels)


class LookaheadMetrics:
    """Publishes what a replica's look-aheads have come to, as one metric with the counters' names as labels."""

    def __init__(self, deployment: str) -> None:
        self._deployment = deployment
        self._counter = _counter("lookahead")
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        for name, more in self._growth.of(counters).items():
            self._counter.inc(more, {"deployment": self._deployment, "counted": name})


class EngineMetrics:
    """Publishes what one replica's engine core counts of its steps, and what it holds."""

    _COUNTED: ClassVar[tuple[str, ...]] = (
        *("steps", "step_us", "mask_us", "masked_steps", "mask_rows", "distinct_mask_rows"),
        *("preemptions", "grammars_loaded", "canonical_answers", "canonical_fallbacks", "redraws"),
    )

    def __init__(self, deployment: str, replica: str) -> None:
        self._labels = {"deployment": deployment, "replica": replica}
        self._counters = {name: _counter(f"engine_{name}") for name in (*self._COUNTED, "restarts")}
        self._drafts = {"drafts": _counter("engine_drafts"), "accepted": _counter("engine_accepted_drafts")}
        self._drafted = {f"{what}_{source}": (what, source) for what in self._drafts for source in DRAFT_SOURCES}
        self._resident, self._running = _gauge("engine_grammars_resident"), _gauge("engine_running")
        self._growth, self._drafts_growth = _Growth(), _Growth()

    def update(self, status: ReplicaStatus) -> None:
        counted = {name: getattr(status.core, name) for name in self._COUNTED}
        for name, more in self._growth.of({**counted, "restarts": status.restarts}).items():
            self._counters[name].inc(more, self._labels)
        for name, more in self._drafts_growth.of({name: getattr(status.core, name) for name in self._drafted}).items():
            what, source = self._drafted[name]
            self._drafts[what].inc(more, {**self._labels, "source": source})
        self._resident.set(status.core.grammars_resident, self._labels)
        self._running.set(status.running, self._labels)


class MaskMetrics:
    """Publishes what a node's mask broadcaster has done."""

    def __init__(self, application: str) -> None:
        self._labels = {"application": application}
        names = ("frames", "rows", "late", "frame_bytes", "naive_bytes", "refused")
        self._counters = {name: _counter(f"mask_{name}") for name in names}
        self._growth = _Growth()

    def update(self, counters: Mapping[str, int]) -> None:
        """Raises KeyError for a counter that is not one of these."""
        for name, more in self._growth.of(counters).items():
            self._counters[name].inc(more, self._labels)
