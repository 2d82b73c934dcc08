"""What a real engine streams with its usage is, without that event, what it streams otherwise."""

from __future__ import annotations

import json
from typing import Any

from deployments.access.charges import TokenMeter
from deployments.access.usage_event import asking_for_usage, without_usage
from tests.integration.model_service.running_engine import RunningEngine

QUESTION = "Extract name, age as JSON.\n\nMeet Ada Young. Age: 36."


def said(events: list[dict[str, Any]]) -> tuple[str, list[int]]:
    """The text and the token ids of a stream; how they are parted into events is the engine's timing."""
    choices = [choice for event in events for choice in event["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return text, [token for choice in choices for token in choice.get("token_ids") or ()]


def fields(events: list[dict[str, Any]]) -> set[str]:
    """The names of the events' fields, but for one that vLLM has in its last event alone, whichever that is."""
    return {name for event in events for name in event} - {"system_fingerprint"}


def test_a_stream_can_be_metered_unseen(jumping: RunningEngine) -> None:
    plain = jumping.events(QUESTION, max_tokens=12)
    body, hidden = asking_for_usage({"stream": True, "max_tokens": 12})
    assert hidden
    asked = jumping.events(QUESTION, **{name: value for name, value in body.items() if name != "stream"})
    stream = "".join(f"data: {json.dumps(event, separators=(',', ':'))}\n\n" for event in asked)
    meter = TokenMeter(1000)
    meter.asked()
    meter.piece(stream)
    usage = jumping.body(QUESTION, max_tokens=12)["usage"]
    assert meter.tokens == usage["total_tokens"] > 12
    seen = [json.loads(line.removeprefix("data: ")) for line in without_usage(stream).splitlines() if line]
    assert len(seen) == len(asked) - 1
    assert said(seen) == said(plain)
    assert fields(seen) == fields(plain)
