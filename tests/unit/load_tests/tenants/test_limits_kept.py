"""How far limits were kept, from what clients saw."""

from __future__ import annotations

import pytest

from load_tests.front_door.clients.connection import Reply
from load_tests.front_door.clients.events import Part
from load_tests.tenants.limited import Limited, Visit, visit_of
from load_tests.tenants.limits_kept import limit_row, most_at_once, most_in_a_minute

EVENTS = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}\n\n'
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 4, "total_tokens": 9}}\n\n'
DONE = b"data: [DONE]\n\n"


def visit(first_s: float, last_s: float, tokens: int = 1, refused: bool = False, failed: bool = False) -> Visit:
    return Visit(first_s - 0.1, first_s, last_s, refused, failed, tokens)


def test_spans_that_meet_do_not_overlap() -> None:
    assert most_at_once([]) == 0
    assert most_at_once([(0, 1), (1, 2)]) == 1
    assert most_at_once([(0, 3), (1, 2), (1.5, 4), (3.5, 5)]) == 3


def test_a_minute_is_sixty_seconds_anywhere() -> None:
    assert most_in_a_minute([]) == 0
    assert most_in_a_minute([(59, 1), (0, 2), (60, 4), (118.9, 8)]) == 13
    assert most_in_a_minute([(0, 5), (100, 3)]) == 5


@pytest.mark.parametrize(
    ("what", "before", "in_all"), [("concurrent_requests", 2, 3), ("requests_per_minute", 2, 5), ("tokens_per_minute", 20, 50)]
)
def test_what_was_used_is_told_before_and_in_all(what: str, before: int, in_all: int) -> None:
    early = [visit(0, 2, 10), visit(1, 3, 10)]
    late = [visit(6, 9, 10), visit(7, 9, 10), visit(8, 10, 10)]
    others = [visit(0, 10, refused=True), visit(0, 10, failed=True)]
    row = limit_row("x", Limited(what, 2, b"", 1), [*early, *late, *others], killed_s=5)
    assert (row["used_before"], row["used"], row["used_by_limit"]) == (before, in_all, in_all / 2)
    assert (row["answered_after"], row["refused"], row["failed"]) == (3, 1, 1)


def test_an_answer_is_one_that_came_to_its_end() -> None:
    whole = visit_of(Reply(200, [Part(1.0, EVENTS), Part(2.0, USAGE + DONE)]), 0.5, 2.5)
    assert whole == Visit(0.5, 1.0, 2.5, refused=False, failed=False, tokens=9)
    assert visit_of(Reply(200, [Part(1.0, EVENTS)]), 0.5, 2.5).failed
    assert visit_of(Reply(200, [Part(1.0, EVENTS + b'data: {"error": {}}\n\n' + DONE)]), 0.5, 2.5).failed
    assert visit_of(Reply(503, [Part(1.0, b"{}")]), 0.5, 2.5).failed
    assert visit_of(Reply(), 0.5, 2.5).failed


def test_a_refusal_is_no_failure() -> None:
    refused = visit_of(Reply(429, [Part(1.0, b"{}")]), 0.5, 2.5)
    assert refused.refused
    assert not refused.failed
