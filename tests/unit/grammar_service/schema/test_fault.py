from __future__ import annotations

import pytest

from grammar_service.schema.algebra.inexact import Reason
from grammar_service.schema.fault import Fault, explained

FAULTS = [Fault("/a/not", "1"), Fault("/a/contains", "2"), Fault("/b/contains", "3"), Fault("/b/not/contains", "4"), Fault(None, "5")]


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (Reason("…", "/b/not"), "4"),
        (Reason("…", "/b/not/items/not"), "4"),
        (Reason("`contains` …", "/b"), "3"),
        (Reason("`contains` …", "/a"), "2"),
        (Reason("`contains` …"), "2"),
        (Reason("…", "/c"), "1"),
        (Reason("…"), "1"),
    ],
)
def test_a_reason_goes_to_the_fault_that_it_is_about(reason: Reason, message: str) -> None:
    told = explained(FAULTS, reason)
    assert [fault.message for fault in told] == [fault.message for fault in FAULTS]
    assert [fault.message for fault in told if fault.because == reason] == [message]


def test_nothing_is_explained_where_nothing_is_at_fault() -> None:
    assert explained([], Reason("…")) == []


@pytest.mark.parametrize(
    ("because", "text"),
    [
        (None, "no"),
        (Reason("no", "/a/not"), "no"),
        (Reason("why"), "no: why"),
        (Reason("why", "/a/not"), "no: why"),
        (Reason("why", "/a"), "no: why"),
        (Reason("why", "/a/not/items"), "no: why (/a/not/items)"),
        (Reason("why", "/b"), "no: why (/b)"),
    ],
)
def test_the_text_says_where_the_reason_lies_unless_the_fault_does(because: Reason | None, text: str) -> None:
    assert Fault("/a/not", "no", because=because).text == text


def test_a_fault_of_a_part_moves_with_its_reason() -> None:
    fault = Fault("/not", "no", because=Reason("why", "/not/items")).below("/format/json_schema")
    assert fault.pointer == "/format/json_schema/not"
    assert fault.text == "no: why (/format/json_schema/not/items)"
    assert Fault(None, "no").below("/x").pointer == "/x"
