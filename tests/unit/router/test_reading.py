"""What strangers say is read where it makes sense, and nothing that they say raises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_service.messages import Call, Endpoint
from router.load import LoadReport
from router.reading import CallFacts, read_call, read_report

ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=1)
STATS = ["taken_at", "running", "waiting", "outstanding_prefill_tokens", "resident_keys", "mask_ms", "step_ms", "step_tokens", "colour"]


@dataclass
class Said:
    prompt_tokens: Any
    forced_tokens: Any
    prefix: Any
    avoid: Any


def test_a_call_of_the_model_service_is_one_that_can_be_read() -> None:
    call = Call(Endpoint.CHAT, "id", {}, None, prompt_tokens=30, forced_tokens=12, prefix="p", avoid="r1")
    assert read_call(["something else", call]) == CallFacts(42, "p", "r1")


def test_other_arguments_say_nothing() -> None:
    assert read_call([]) == read_call([1, "text", {"prompt_tokens": 3}]) == CallFacts()


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_a_call_may_say_anything(prompt: object, forced: object, prefix: object, avoid: object) -> None:
    facts = read_call([Said(prompt, forced, prefix, avoid)])
    assert isinstance(facts.prefix, str)
    assert facts.tokens >= 0
    assert isinstance(facts.avoid, str)


def test_a_report_is_read_from_what_the_model_deployment_says() -> None:
    stats = {"taken_at": 12.5, "running": 3, "outstanding_prefill_tokens": 700, "step_tokens": 8192}
    assert read_report("a", stats) == LoadReport("a", 12.5, 3, 0, 700, step_tokens=8192)


@pytest.mark.parametrize(
    "stats", [{}, {"running": 3}, {"taken_at": 1.0}, {"taken_at": math.nan, "running": 1}, {"taken_at": "now", "running": 1}]
)
def test_a_report_without_its_time_or_its_requests_is_none(stats: dict[str, Any]) -> None:
    assert read_report("a", stats) is None


@given(st.dictionaries(st.sampled_from(STATS), ANYTHING))
def test_a_replica_may_say_anything(stats: dict[str, Any]) -> None:
    report = read_report("a", stats)
    assert report is None or (report.running >= 0 and math.isfinite(report.step_ms))
