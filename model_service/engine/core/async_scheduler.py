"""Jumping where a step is scheduled before the one ahead of it is over (vLLM 0.32: `v1/core/sched/async_scheduler.py`,
`step_with_batch_queue` in `v1/engine/core.py`).

When a token comes, the step behind it is under way: it computes that token, and samples what follows. If a segment follows, the sample is
void, and nothing else of that step is: the segment is appended at once, the sample is dropped when it comes, and the next step computes the
whole segment. So each segment costs one forward more of its request than in synchronous scheduling. Nothing waits for its mask, as a step
otherwise does whose requests' last tokens are not known yet. What has nothing to do with segments is vLLM's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

from model_service.engine.core.scheduler import MaskcastScheduler


class VoidSamples:
    """Of the steps that are under way, which return in the order they were scheduled in: the requests whose samples there are void."""

    def __init__(self) -> None:
        self._under_way: deque[tuple[SchedulerOutput, set[str]]] = deque()
        self._returned: Set[str] = frozenset()

    def scheduled(self, step: SchedulerOutput) -> None:
        self._under_way.append((step, set()))

    def returned(self) -> None:
        """The first of the steps has been computed; what it holds is asked from now on."""
        _, self._returned = self._under_way.popleft()

    def add(self, request_id: str) -> None:
        """The request's last sample that is under way."""
        next(void for step, void in reversed(self._under_way) if request_id in step.num_scheduled_tokens).add(request_id)

    def __contains__(self, request_id: str) -> bool:
        """Whether the request's sample in the step that has returned is void."""
        return request_id in self._returned


class MaskcastAsyncScheduler(MaskcastScheduler, AsyncScheduler):
    """vLLM keeps asynchronous scheduling only for subclasses of its `AsyncScheduler`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._void = VoidSamples()

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        output = super().schedule(throttle_prefills)
        self._void.scheduled(output)
        return output

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput) -> dict[int, EngineCoreOutputs]:
        self._void.returned()
        return super().update_from_output(scheduler_output, model_runner_output)

    def _update_request_with_output(self, request: Request, new_token_ids: list[int], is_stale: bool = False) -> tuple[list[int], bool]:
        if request.request_id in self._void:
            return [], False
        return super()._update_request_with_output(request, new_token_ids, is_stale)

    def _may_append(self, request: Request) -> bool:
        # Each token that is under way is followed by a sample: no part of a segment is, nor a step ahead of a preemption.
        return bool(request.num_in_flight_tokens == request.num_output_placeholders)

    def _append(self, request: Request, tokens: list[int]) -> tuple[list[int], bool]:
        if request.num_output_placeholders:
            request.num_output_placeholders = 0
            self._void.add(request.request_id)
        return super()._append(request, tokens)
