"""Watches where vLLM makes the span of an answer (vLLM 0.32: `v1/engine/output_processor.py`), which it does only where it is to trace."""

from __future__ import annotations

from typing import Any

from vllm.v1.engine import EngineCoreOutput
from vllm.v1.engine.output_processor import OutputProcessor, RequestState

from model_service.timeline import AnswerTimes, Timeline


class TraceWatch:
    """`watch` tells it whose times are wanted. `others`: whether vLLM is to make spans of other requests too, which takes some 0.4 ms of
    processor time each, also where nobody keeps them."""

    def __init__(self, processor: OutputProcessor, others: bool) -> None:
        self._timelines: dict[str, Timeline] = {}
        self._others = others
        self._trace = processor.do_tracing
        processor.do_tracing = self._tracing

    def watch(self, request_id: str, timeline: Timeline) -> None:
        """`request_id` is the front end's, which the answers to one prompt share."""
        self._timelines[request_id] = timeline

    def forget(self, request_id: str) -> None:
        self._timelines.pop(request_id, None)

    def _tracing(self, output: EngineCoreOutput, state: RequestState, *args: Any) -> None:
        if (timeline := self._timelines.get(state.external_req_id)) is not None:
            timeline.answers.append(_times(state))
        if timeline is not None or self._others:
            self._trace(output, state, *args)


def _times(state: RequestState) -> AnswerTimes:
    stats = state.stats
    return AnswerTimes(
        stats.queued_ts,
        stats.scheduled_ts,
        stats.first_token_ts,
        stats.last_token_ts,
        state.prompt_len,
        stats.num_generation_tokens,
        stats.num_preemptions,
    )
