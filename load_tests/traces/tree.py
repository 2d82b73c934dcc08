"""A trace as a tree of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from load_tests.traces.collector import SpanRecord

PREFIX = "maskcast."
HIDDEN = frozenset({"maskcast.request_id", "error.type"})
OTHERS = ("http.response.status_code", "gen_ai.usage.completion_tokens", "gen_ai.latency.time_to_first_token")
"""Attributes that are shown, besides ours."""
HEADING = f"{'span':<32} {'from ms':>8} {'for ms':>8}  {'process':<16} tells"


def lines(spans: Sequence[SpanRecord]) -> list[str]:
    """A line for each span: its name, when it began and how long it took, in milliseconds, the process, and what it tells."""
    known = {span.id for span in spans}
    start = min((span.began_ns for span in spans), default=0)
    roots = [span for span in spans if span.parent not in known]
    return [line for root in roots for line in _below(root, spans, start, 0)]


def _below(span: SpanRecord, spans: Sequence[SpanRecord], start: int, depth: int) -> Iterator[str]:
    yield _line(span, start, depth)
    for child in sorted((each for each in spans if each.parent == span.id), key=lambda each: (each.began_ns, each.ended_ns)):
        yield from _below(child, spans, start, depth + 1)


def _line(span: SpanRecord, start: int, depth: int) -> str:
    name = f"{'  ' * depth}{span.name}"
    when, long = (span.began_ns - start) / 1e6, (span.ended_ns - span.began_ns) / 1e6
    told = [f"{key.removeprefix(PREFIX)}={_short(value)}" for key, value in span.attributes.items() if _shown(key)]
    failed = [f"FAILED: {span.error}"] if span.error else []
    return f"{name:<32} {when:>8.1f} {long:>8.1f}  {span.component:<16} {'  '.join([*failed, *told])}".rstrip()


def _shown(key: str) -> bool:
    return (key.startswith(PREFIX) and key not in HIDDEN) or key in OTHERS


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
