"""What strangers say is read where it makes sense, and nothing that they say raises."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_service.messages import Call, Endpoint
from router.reading import LONGEST, CallFacts, read_call, read_report
from router.replica_load import LoadReport

HUGE = 10**400
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(HUGE),
    st.just(-HUGE),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=1),
)
STATS = ["taken_at", "requests", "prefill_tokens", "step_ms", "step_tokens", "colour"]


@dataclass
class Said:
    prompt_tokens: Any
    forced_tokens: Any
    prefix: Any
    avoid: Any
    sequences: Any
    tenant: Any
    weight: Any
    progress: Any


def test_a_call_of_the_model_service_is_one_that_can_be_read() -> None:
    call = Call(Endpoint.CHAT, "id", {}, None, prompt_tokens=30, forced_tokens=12, prefix="p", avoid="r1", sequences=5)
    assert read_call(["something else", call]) == CallFacts(42, "p", "r1", 5)


def test_other_arguments_say_nothing() -> None:
    assert read_call([]) == read_call([1, "text", {"prompt_tokens": 3}]) == CallFacts()


@given(st.builds(Said, *[ANYTHING] * len(fields(Said))))
def test_a_call_may_say_anything(said: Said) -> None:
    facts = read_call([said])
    assert 1 <= facts.sequences <= LONGEST
    assert 0 < facts.weight <= LONGEST
    assert facts.tenant == str(said.tenant)
    assert facts.progress is None
    assert facts.prefix is None or (isinstance(facts.prefix, str) and facts.prefix)
    assert 0 <= facts.tokens <= 2 * LONGEST
    assert isinstance(facts.avoid, str)


def test_a_report_is_read_from_what_the_model_deployment_says() -> None:
    stats = {"taken_at": 12.5, "requests": 3, "prefill_tokens": 700, "step_tokens": 8192, "step_ms": 11.5}
    assert read_report("a", stats) == LoadReport("a", 12.5, 3, 700, step_ms=11.5, step_tokens=8192)


@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"requests": 3},
        {"taken_at": 1.0},
        {"taken_at": math.nan, "requests": 1},
        {"taken_at": "now", "requests": 1},
        {"taken_at": HUGE, "requests": 1},
    ],
)
def test_a_report_without_its_time_or_its_requests_is_none(stats: dict[str, Any]) -> None:
    assert read_report("a", stats) is None


@given(st.dictionaries(st.sampled_from(STATS), ANYTHING))
def test_a_replica_may_say_anything(stats: dict[str, Any]) -> None:
    report = read_report("a", stats)
    assert report is None or all(
        0 <= said <= LONGEST for said in (report.requests, report.prefill_tokens, report.step_ms, report.step_tokens)
    )
    assert report is None or math.isfinite(report.taken_at)
