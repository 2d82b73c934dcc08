"""The collector takes what OpenTelemetry's own exporter sends, and a trace becomes a tree of text."""

from __future__ import annotations

from deployments.config import parse_settings
from deployments.tracing.opening import open_tracing
from load_tests.traces.collector import SpanRecord, collecting
from load_tests.traces.tree import lines
from tests.recorded_spans import SAMPLED

TRACE = SAMPLED.split("-")[1]


def span(name: str, own: str, parent: str = "", began_ms: float = 0, ended_ms: float = 1, error: str = "") -> SpanRecord:
    times = int(began_ms * 1e6), int(ended_ms * 1e6)
    return SpanRecord(name, TRACE, own, parent, "Ingress", *times, error, (), {"maskcast.kind": "regex", "other": 1})


def test_what_an_exporter_sends_is_collected() -> None:
    with collecting() as collector:
        tracing = open_tracing(parse_settings({"telemetry": {"otlp_endpoint": collector.url, "sample_ratio": 0}}), "Ingress")
        assert tracing is not None
        with tracing.span("outer", "server", SAMPLED, kind="regex", answers=2) as outer, tracing.span("inner") as inner:
            outer.mark("first piece")
            inner.fail("invalid_grammar")
        tracing.span("of another trace").end()
        tracing.close()
        found = {each.name: each for each in collector.trace(TRACE)}
    assert set(found) == {"outer", "inner"}
    assert found["inner"].parent == found["outer"].id
    assert (found["outer"].component, found["outer"].events) == ("Ingress", ("first piece",))
    assert (found["inner"].error, found["outer"].error) == ("invalid_grammar", "")
    assert found["outer"].attributes == {"maskcast.kind": "regex", "maskcast.answers": 2}
    assert found["outer"].began_ns <= found["inner"].began_ns <= found["inner"].ended_ns <= found["outer"].ended_ns


def test_children_stand_below_their_parents_in_the_order_in_which_they_began() -> None:
    spans = [span("late", "c", "a", 4, 5), span("root", "a", "gone"), span("early", "b", "a", 2, 3, "busy"), span("leaf", "d", "b", 2, 3)]
    tree = lines(spans)
    assert [(len(line) - len(line.lstrip()), line.split()[0]) for line in tree] == [(0, "root"), (2, "early"), (4, "leaf"), (2, "late")]
    assert tree[1].split()[1:] == ["2.0", "1.0", "Ingress", "FAILED:", "busy", "kind=regex"]
