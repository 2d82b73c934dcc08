"""A stream is asked for its usage, and its client sees none that he did not ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.access.usage_event import asking_for_usage, without_usage


def event(**fields: Any) -> str:
    return f"data: {json.dumps(fields, separators=(',', ':'))}\n\n"


TEXT = event(choices=[{"delta": {"content": 'a "choices":[] "usage":{'}}])
USAGE = event(id="x", choices=[], usage={"prompt_tokens": 3, "total_tokens": 5})
DONE = "data: [DONE]\n\n"


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None, "continuous_usage_stats": False}])
def test_a_stream_is_asked_for_its_usage(options: dict[str, Any] | None) -> None:
    body, hidden = asking_for_usage({"stream": True, "stream_options": options})
    assert hidden
    assert body["stream_options"]["include_usage"] is True


@pytest.mark.parametrize(
    "body", [{"stream": True, "stream_options": {"include_usage": True}}, {"stream": False}, {}, {"stream": True, "stream_options": "all"}]
)
def test_others_stay_as_they_are(body: dict[str, Any]) -> None:
    assert asking_for_usage(body) == (body, False)


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (USAGE, ""),
        (TEXT, TEXT),
        (TEXT + USAGE, TEXT),
        (TEXT + USAGE + DONE, TEXT + DONE),
        (USAGE + DONE, DONE),
        (TEXT + DONE, TEXT + DONE),
        (event(choices=[]), event(choices=[])),
    ],
)
def test_only_the_event_of_the_usage_is_kept_back(sent: str, seen: str) -> None:
    assert without_usage(sent) == seen
