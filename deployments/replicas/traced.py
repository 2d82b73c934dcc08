"""A model replica with spans around its answers, and below them what its engine tells of its work."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from deployments.tracing.tracing import Span, Tracing, Value, code_of, monotonic_epoch_ns
from model_service.core_figures import CoreFigures
from model_service.messages import Call
from model_service.replies import Failure, Head
from model_service.timeline import AnswerTimes, Timeline

MOST_ANSWERS = 8
"""Of one call, that have spans of their own."""


class TimedReplica(Protocol):
    """A `ModelReplica`."""

    @property
    def core(self) -> CoreFigures: ...

    def respond(self, call: Call, timeline: Timeline | None = None) -> AsyncGenerator[Head | Failure | str, None]: ...


class TracedReplica:
    """`answer`; below it, for each finished answer, `queue`, `prefill` and `decode` of the engine, and vLLM's own span; and `masks`. What
    nobody traces has none."""

    def __init__(self, replica: TimedReplica, name: str, tracing: Tracing) -> None:
        self._replica = replica
        self._name = name
        self._tracing = tracing

    def respond(self, call: Call) -> AsyncGenerator[Head | Failure | str, None]:
        """See `ModelReplica`."""
        if not call.trace:
            return self._replica.respond(call)
        span = self._tracing.span("answer", "server", call.trace, replica=self._name)
        if not span.is_recording:
            return self._replica.respond(call)
        return self._traced(replace(call, trace=span.traceparent), span)

    async def _traced(self, call: Call, span: Span) -> AsyncGenerator[Head | Failure | str, None]:
        timeline, before = Timeline(), self._replica.core
        try:
            async with aclosing(self._replica.respond(call, timeline)) as items:
                async for item in items:
                    if isinstance(item, Failure):
                        span.fail(item.code)
                    yield item
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                span.fail(code_of(error))
            raise
        finally:
            self._tell(span, timeline, before, self._replica.core)
            span.end()

    def _tell(self, span: Span, timeline: Timeline, before: CoreFigures, after: CoreFigures) -> None:
        forced = timeline.forced
        span.set(answers=len(timeline.answers), forced_tokens=forced.tokens, forced_segments=forced.segments)
        span.set(sampled_tokens=sum(each.output_tokens for each in timeline.answers) - forced.tokens)
        phases = [phase for times in timeline.answers[:MOST_ANSWERS] for phase in phases_of(times)]
        if phases and after.masked_steps > before.masked_steps:
            phases.append(masks_of(timeline.answers, before, after))
        zero_ns = monotonic_epoch_ns()
        for phase in phases:
            began_ns = zero_ns + int(phase.began_s * 1e9)
            part = self._tracing.span(phase.name, parent=span.traceparent, began_ns=began_ns)
            part.set(**phase.told)
            part.end(zero_ns + int(phase.ended_s * 1e9))


@dataclass(frozen=True, slots=True)
class Phase:
    """Of a call in its engine; times of `time.monotonic`."""

    name: str
    began_s: float
    ended_s: float
    told: dict[str, Value]


def phases_of(times: AnswerTimes) -> tuple[Phase, ...]:
    decoded: dict[str, Value] = {"output_tokens": times.output_tokens, "preemptions": times.preemptions}
    return (
        Phase("queue", times.queued, times.scheduled, {}),
        Phase("prefill", times.scheduled, times.first_token, {"prompt_tokens": times.prompt_tokens}),
        Phase("decode", times.first_token, times.last_token, decoded),
    )


def masks_of(answers: Sequence[AnswerTimes], before: CoreFigures, after: CoreFigures) -> Phase:
    """What the engine has done meanwhile, for all of its calls together: its steps, those with masks (frames, where a broadcaster makes
    them), and the frames that came late."""
    told: dict[str, Value] = {
        "engine_steps": after.steps - before.steps,
        "frames": after.masked_steps - before.masked_steps,
        "rows": after.mask_rows - before.mask_rows,
        "mask_ms": (after.mask_us - before.mask_us) / 1000,
        "late": after.late_frames - before.late_frames,
    }
    return Phase("masks", min(each.scheduled for each in answers), max(each.last_token for each in answers), told)
