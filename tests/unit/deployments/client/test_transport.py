from __future__ import annotations

from deployments.client.transport import parse_events


def test_events_are_read_up_to_the_end_mark_and_comments_are_skipped() -> None:
    lines = [": keep-alive", 'data: {"a": 1}', "", 'data: {"b": 2}', "data: [DONE]", 'data: {"c": 3}']
    assert list(parse_events(lines)) == [{"a": 1}, {"b": 2}]
