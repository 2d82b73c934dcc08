"""What a real engine streams with its usage is, without that event, what it streams otherwise."""

from __future__ import annotations

import json
from typing import Any

from deployments.access.charges import TokenMeter
from deployments.access.usage_event import asking_for_usage, without_usage
from tests.integration.model_service.running_engine import RunningEngine

QUESTION = "Extract name, age as JSON.\n\nMeet Ada Young. Age: 36."


def texts(events: list[dict[str, Any]]) -> list[Any]:
    return [event["choices"] for event in events]


def test_a_stream_can_be_metered_unseen(jumping: RunningEngine) -> None:
    plain = jumping.events(QUESTION, max_tokens=12)
    body, hidden = asking_for_usage({"stream": True, "max_tokens": 12})
    assert hidden
    asked = jumping.events(QUESTION, **{name: value for name, value in body.items() if name != "stream"})
    stream = "".join(f"data: {json.dumps(event, separators=(',', ':'))}\n\n" for event in asked)
    meter = TokenMeter(1000)
    meter.piece(stream)
    usage = jumping.body(QUESTION, max_tokens=12)["usage"]
    assert meter.tokens == usage["total_tokens"] > 12
    seen = [json.loads(line.removeprefix("data: ")) for line in without_usage(stream).splitlines() if line]
    assert texts(seen) == texts(plain)
    told = [{*event} - {"system_fingerprint"} for event in (*seen, *plain)]  # vLLM's last event has it, whichever that is
    assert told[: len(seen)] == told[len(seen) :]
