"""Spans name their parents as W3C Trace Context says, and the parent decides whether they are recorded."""

from __future__ import annotations

import time

import pytest
from opentelemetry.trace import StatusCode

from deployments.config import parse_settings
from deployments.errors import SettingsError, bad_request
from deployments.tracing.opening import open_tracing
from deployments.tracing.tracing import monotonic_epoch_ns
from tests.recorded_spans import SAMPLED, UNSAMPLED, RecordedSpans, own, parent, told


def test_a_span_is_below_the_one_that_is_named_or_current() -> None:
    recorded = RecordedSpans(sample_ratio=0)
    with recorded.tracing.span("outer", "server", SAMPLED), recorded.tracing.span("inner", answers=2):
        pass
    outer, inner = recorded.one("outer"), recorded.one("inner")
    assert parent(outer) == SAMPLED.split("-")[2]
    assert parent(inner) == own(outer)
    assert inner.context is not None
    assert f"{inner.context.trace_id:032x}" == SAMPLED.split("-")[1]
    assert told(inner) == {"answers": 2}


def test_the_callers_decision_holds_and_the_ratio_is_for_those_without_one() -> None:
    for ratio, caller, expected in ((1, UNSAMPLED, 0), (0, SAMPLED, 1), (1, "", 1), (0, "", 0)):
        recorded = RecordedSpans(ratio)
        with recorded.tracing.span("any", parent=caller) as span:
            assert span.is_recording is bool(expected)
        assert len(recorded.spans) == expected


def test_what_is_not_recorded_is_told_to_others_so_that_they_do_not_record_it_either() -> None:
    tracing = RecordedSpans(1).tracing
    inside = tracing.span("inside", parent=UNSAMPLED).traceparent
    assert inside.split("-")[1] == UNSAMPLED.split("-")[1]
    assert inside.endswith("-00")
    assert tracing.current().traceparent == ""


@pytest.mark.parametrize("nonsense", ["x", "00-" + "0" * 32 + "-" + "8" * 16 + "-01", "00-7-8-01", "ff" + SAMPLED[2:], "ä" * 100])
def test_a_parent_that_is_none_is_as_good_as_no_parent(nonsense: str) -> None:
    recorded = RecordedSpans()
    recorded.tracing.span("root", parent=nonsense).end()
    assert parent(recorded.one("root")) == ""


def test_an_error_is_told_by_its_code_and_not_by_its_message() -> None:
    recorded = RecordedSpans()
    with pytest.raises(Exception, match="secret"), recorded.tracing.span("failed"):
        raise bad_request("a secret of the request", code="invalid_grammar")
    span = recorded.one("failed")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "invalid_grammar"
    assert span.events == ()


def test_times_of_the_monotonic_clock_become_times_of_day() -> None:
    now = monotonic_epoch_ns() + int(time.monotonic() * 1e9)
    assert abs(now - time.time_ns()) < 10**8


def test_without_an_endpoint_there_is_no_tracing() -> None:
    assert open_tracing(parse_settings({}), "Ingress") is None


def test_an_endpoint_is_an_address_with_its_path() -> None:
    with pytest.raises(SettingsError, match="otlp_endpoint"):
        parse_settings({"telemetry": {"otlp_endpoint": "collector:4317"}})
