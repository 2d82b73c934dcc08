"""The events of a stream are marked as unchecked until its end says otherwise."""

from __future__ import annotations

import json
from typing import Any

from deployments.api.checking.stream import CheckedStream


def event(body: Any) -> str:
    return f"data: {json.dumps(body)}\n\n"


def chunk(text: str, index: int = 0, end: str | None = None) -> str:
    return event({"id": "c", "model": "m", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": end}]})


def bodies(text: str) -> list[Any]:
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line and line != "data: [DONE]"]


def test_texts_are_put_together_by_choice_and_events_are_marked() -> None:
    stream = CheckedStream()
    told = stream.piece(chunk("a")) + stream.piece(chunk("b", 1) + chunk("c") + "data: [DONE]\n\n")
    assert stream.finished == ["ac", "b"]
    assert ["maskcast" in body for body in bodies(told)] == [False, True, True]
    assert bodies(told)[1]["maskcast"] == {"unchecked": True}
    assert "[DONE]" not in told


def test_the_end_says_that_all_was_checked() -> None:
    stream = CheckedStream()
    stream.piece(chunk("a"))
    told = "".join(stream.checked())
    assert bodies(told) == [{"id": "c", "model": "m", "choices": [], "maskcast": {"checked": True}}]
    assert told.endswith("data: [DONE]\n\n")


def test_a_choice_that_is_cut_off_leaves_the_stream_unchecked() -> None:
    stream = CheckedStream()
    stream.piece(chunk("a", 0, "length") + chunk("b", 1, "stop"))
    assert stream.finished == ["b"]
    assert bodies("".join(stream.checked()))[0]["maskcast"] == {"checked": False}


def test_an_error_in_the_stream_passes_as_it_is() -> None:
    stream = CheckedStream()
    error = event({"error": {"message": "no"}})
    assert stream.piece(error) == error
    assert stream.failed
