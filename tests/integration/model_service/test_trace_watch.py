"""What vLLM's output processor is asked to trace, and the times that are taken there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from model_service.engine.trace_watch import TraceWatch
from model_service.timeline import AnswerTimes, Timeline


class Processor:
    """The one method of vLLM's that is watched."""

    def __init__(self) -> None:
        self.traced: list[str] = []

    def do_tracing(self, output: Any, state: Any, stats: Any) -> None:
        self.traced.append(state.external_req_id)


def finished(request_id: str) -> SimpleNamespace:
    stats = SimpleNamespace(
        queued_ts=1.0, scheduled_ts=2.0, first_token_ts=3.0, last_token_ts=4.0, num_generation_tokens=6, num_preemptions=0
    )
    return SimpleNamespace(external_req_id=request_id, stats=stats, prompt_len=5)


@pytest.mark.parametrize(("others", "traced"), [(True, ["wanted", "other", "wanted"]), (False, ["wanted"])])
def test_others_are_left_out_where_only_calls_are_traced(others: bool, traced: list[str]) -> None:
    processor, timeline = Processor(), Timeline()
    watch = TraceWatch(processor, others)
    watch.watch("wanted", timeline)
    for request_id in ("wanted", "other"):
        processor.do_tracing(None, finished(request_id), None)
    watch.forget("wanted")
    processor.do_tracing(None, finished("wanted"), None)
    assert processor.traced == traced
    assert timeline.answers == [AnswerTimes(1.0, 2.0, 3.0, 4.0, prompt_tokens=5, output_tokens=6, preemptions=0)]
