"""A request that its caller wants traced, and what the collector gets of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from load_tests.traces.collector import Collector, SpanRecord
from tests.e2e.service import wait_for


@dataclass(frozen=True)
class Tree:
    spans: list[SpanRecord]

    def one(self, name: str) -> SpanRecord:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def told(self, name: str) -> dict[str, Any]:
        """The attributes of a span, ours without their prefix."""
        return {key.removeprefix("maskcast."): value for key, value in self.one(name).attributes.items()}

    def path(self, name: str) -> list[str]:
        """From the root down to a span."""
        by_id = {span.id: span for span in self.spans}
        names, span = [name], self.one(name)
        while span.parent in by_id:
            span = by_id[span.parent]
            names.insert(0, span.name)
        return names

    def below(self, name: str) -> set[str]:
        """Names of a span's children."""
        return {span.name for span in self.spans if span.parent == self.one(name).id}


@dataclass(frozen=True)
class Asked:
    """`caller` is the id of its own span, which nobody collects."""

    collector: Collector
    trace: str = field(default_factory=lambda: uuid4().hex)
    caller: str = "abcdef0123456789"

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace}-{self.caller}-01"

    @property
    def headers(self) -> dict[str, str]:
        return {"traceparent": self.traceparent}

    def tree(self, *names: str) -> Tree:
        """What there is of the trace when spans with these names have come: processes send theirs once a second."""
        wait_for(lambda: {*names} <= self._names(), 30, f"the spans {', '.join(names)}")
        return Tree(self.collector.trace(self.trace))

    def _names(self) -> set[str]:
        return {span.name for span in self.collector.trace(self.trace)}
