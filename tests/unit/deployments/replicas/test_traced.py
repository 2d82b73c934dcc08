"""A model replica with spans around its answers, and what they tell of the engine."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from deployments.replicas.traced import TracedReplica
from model_service.core_figures import CoreFigures
from model_service.messages import Call, Endpoint
from model_service.replies import ENGINE_DEAD, Failure, Head
from model_service.timeline import AnswerTimes, Timeline
from tests.recorded_spans import SAMPLED, UNSAMPLED, RecordedSpans, own, parent, told

CALL = Call(Endpoint.CHAT, "id", {}, None, trace=SAMPLED)
NOW = time.monotonic()
TIMES = AnswerTimes(NOW, NOW + 0.5, NOW + 0.75, NOW + 2, prompt_tokens=7, output_tokens=9, preemptions=0)
Items = AsyncGenerator[Head | Failure | str, None]


class ScriptedReplica:
    """Answers with this item, when its engine has taken so many steps, and masked so many."""

    def __init__(self, item: Failure | str = "a", masked: int = 0, answers: int = 1) -> None:
        self.core = CoreFigures()
        self.calls: list[Call] = []
        self.timelines: list[Timeline | None] = []
        self._item = item
        self._masked = masked
        self._answers = answers

    async def respond(self, call: Call, timeline: Timeline | None = None) -> Items:
        self.calls.append(call)
        self.timelines.append(timeline)
        if timeline is not None:
            timeline.answers += [TIMES] * self._answers
            timeline.forced.add(0, 4, 0, 8)
        self.core = CoreFigures(steps=6, mask_us=1500, masked_steps=self._masked, mask_rows=8, late_frames=1)
        yield self._item


async def spans_of(replica: ScriptedReplica, call: Call = CALL) -> RecordedSpans:
    recorded = RecordedSpans()
    assert [item async for item in TracedReplica(replica, "r1", recorded.tracing).respond(call)]
    return recorded


async def test_the_engines_phases_are_below_the_answer_and_meet() -> None:
    replica = ScriptedReplica(masked=5)
    recorded = await spans_of(replica)
    answer = recorded.one("answer")
    assert parent(answer) == SAMPLED.split("-")[2]
    assert replica.calls[0].trace.split("-")[2] == own(answer)
    assert told(answer) == {"replica": "r1", "answers": 1, "forced_tokens": 4, "forced_segments": 1, "sampled_tokens": 5}
    queue, prefill, decode, masks = (recorded.one(name) for name in ("queue", "prefill", "decode", "masks"))
    assert {parent(phase) for phase in (queue, prefill, decode, masks)} == {own(answer)}
    assert (queue.end_time, prefill.end_time) == (prefill.start_time, decode.start_time)
    assert (masks.start_time, masks.end_time) == (prefill.start_time, decode.end_time)
    assert queue.start_time is not None
    assert decode.end_time is not None
    assert decode.end_time - queue.start_time == pytest.approx(2e9, abs=1e4)
    assert told(prefill) == {"prompt_tokens": 7}
    assert told(decode) == {"output_tokens": 9, "preemptions": 0}
    assert told(masks) == {"engine_steps": 6, "frames": 5, "rows": 8, "mask_ms": 1.5, "late": 1}


async def test_without_masks_there_is_no_span_of_them_and_many_answers_have_few_spans() -> None:
    recorded = await spans_of(ScriptedReplica(answers=100))
    assert recorded.named("masks") == []
    assert len(recorded.named("decode")) == 8
    assert told(recorded.one("answer"))["answers"] == 100


async def test_a_failure_is_the_spans() -> None:
    recorded = await spans_of(ScriptedReplica(Failure(ENGINE_DEAD, "the engine process has ended")))
    assert recorded.one("answer").status.description == ENGINE_DEAD


@pytest.mark.parametrize("trace", ["", UNSAMPLED])
async def test_of_what_is_not_traced_the_engine_keeps_no_times(trace: str) -> None:
    replica = ScriptedReplica()
    recorded = await spans_of(replica, replace(CALL, trace=trace))
    assert (recorded.spans, replica.timelines) == ([], [None])
