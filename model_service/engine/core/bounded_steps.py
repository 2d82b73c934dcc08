"""Steps that stay short for light tenants (vLLM 0.32: `v1/core/sched/scheduler.py`).

In a step of vLLM's all rows go on, and prompts fill what is left of the budget; it takes as long as its work, and whoever comes waits for
the one that is under way. While light and heavy tenants are both there, the heavy ones' part is bounded (`model_service/tenants`): some of
their rows rest for a step, of their prompts less is computed, and light requests are admitted first. A request's tokens do not depend on
the steps that they are computed in.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from vllm.config import VllmConfig
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request, RequestStatus

from model_service.engine.core.grammar_loading import tenant_of
from model_service.engine.core_options import core_options
from model_service.tenants.bounds import HERE_S, MAX_RESTED_STEPS, Work, bounded, heavy_tenants, longest_rested
from model_service.tenants.step_cost import StepCost


def can_bound(config: VllmConfig) -> bool:
    """Whether prompts can be computed in parts of any length, and who waits is admitted in turn."""
    scheduling, model = config.scheduler_config, config.model_config
    return (
        scheduling.enable_chunked_prefill
        and scheduling.policy == "fcfs"
        and (config.speculative_config is None or core_options(config).prompt_lookup)
        and not (model.is_multimodal_model or model.has_inner_state or model.is_encoder_decoder)
    )


@dataclass(slots=True)
class _Requests:
    """`rows`: of heavy tenants, those that go on by a token; `prompts`: those whose text is not computed yet; `free`: all others."""

    free: list[Request] = field(default_factory=list)
    rows: list[Request] = field(default_factory=list)
    prompts: list[Request] = field(default_factory=list)


class BoundedSteps:
    """Of one scheduler, which tells of its requests, and whose steps cost what `cost` has learnt."""

    def __init__(self, scheduler: Scheduler, cost: StepCost, clock: Callable[[], float] = time.monotonic) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._budget: int = scheduler.max_num_scheduled_tokens
        self._threshold: int = scheduler.scheduler_config.long_prefill_token_threshold
        self._cost = cost
        self._tenants: dict[str, str] = {}
        self._requests = Counter[str]()
        self._ran: dict[str, int] = {}
        self._seen: dict[str, float] = {}
        self._usual_rows = 1
        self._prompts_rested = 0

    def added(self, request: Request) -> None:
        tenant = tenant_of(request)
        if tenant and request.request_id not in self._tenants:
            self._tenants[request.request_id] = tenant
            self._requests[tenant] += 1

    def ended(self, request: Request) -> None:
        if (tenant := self._tenants.pop(request.request_id, None)) is not None:
            self._requests[tenant] -= 1
            if not self._requests[tenant]:
                del self._requests[tenant]

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """For the step that is scheduled within it."""
        scheduler = self._scheduler
        heavy = heavy_tenants(self._requests, scheduler.max_num_running_reqs)
        if not self._has_light_beside(heavy) or not self._cost.is_known:
            self._ran.clear()
            yield
            return
        self._bound(heavy)
        try:
            yield
        finally:
            scheduler.max_num_scheduled_tokens = self._budget
            scheduler.scheduler_config.long_prefill_token_threshold = self._threshold

    def _has_light_beside(self, heavy: frozenset[str]) -> bool:
        """Whether there are heavy ones, and others that are there still."""
        now = self._clock()
        self._seen = {tenant: at for tenant, at in self._seen.items() if now < at + HERE_S}
        self._seen.update(dict.fromkeys(self._requests.keys() - heavy, now))
        return bool(heavy and self._seen.keys() - heavy)

    def _bound(self, heavy: frozenset[str]) -> None:
        running, waiting = self._sorted(self._scheduler.running, heavy), self._sorted(self._scheduler.waiting, heavy)
        self._admit_first(waiting)
        free = [*running.free, *filter(self._may_come, waiting.free)]
        work = _work(free)
        if free:
            self._usual_rows = len(free)
        usual = work if free else Work(self._usual_rows, 0)
        rows = self._by_turn(running.rows)
        prompts = sum(map(_left, (*running.prompts, *waiting.prompts)))
        may = bounded(work, usual, [*map(_left, rows)], prompts, self._cost)
        tokens, longest = may.tokens, max(map(_left, free), default=1)
        computed = self._prompts_computed(running.prompts, longest > tokens)
        self._rest([*rows[may.rows :], *running.prompts[computed:]], rows[: may.rows])
        if computed:
            # It comes ahead of light prompts, which the same threshold would cut.
            tokens = max(tokens, longest)
            self._scheduler.scheduler_config.long_prefill_token_threshold = min(tokens, self._threshold or tokens)
        wanted = sum(map(_left, free)) + sum(map(_left, rows[: may.rows])) + tokens
        self._scheduler.max_num_scheduled_tokens = max(1, min(self._budget, wanted))

    def _prompts_computed(self, prompts: Sequence[Request], takes_more: bool) -> int:
        """How many of the heavy prompts under way the step computes: the first one, or none where it would take more than its part, for at
        most `MAX_RESTED_STEPS` steps."""
        if prompts and takes_more and self._prompts_rested < MAX_RESTED_STEPS:
            self._prompts_rested += 1
            return 0
        self._prompts_rested = 0
        return min(len(prompts), 1)

    def _sorted(self, requests: Iterable[Request], heavy: frozenset[str]) -> _Requests:
        found = _Requests()
        for request in requests:
            tenant = self._tenants.get(request.request_id)
            if tenant not in heavy:
                found.free.append(request)
            elif request.status != RequestStatus.RUNNING or request.is_prefill_chunk:
                found.prompts.append(request)
            else:
                found.rows.append(request)
        return found

    def _admit_first(self, waiting: _Requests) -> None:
        """Who is not heavy."""
        if waiting.free and waiting.prompts:
            queue = self._scheduler.waiting
            queue.remove_requests(waiting.prompts)
            for request in waiting.prompts:
                queue.add_request(request)

    def _by_turn(self, rows: Sequence[Request]) -> list[Request]:
        named = {request.request_id: request for request in rows}
        return [named[name] for name in longest_rested(named, self._ran)]

    def _may_come(self, request: Request) -> bool:
        """Whether a waiting request can be scheduled in this step. One whose grammar has come is released here, before the step's budget is
        set: vLLM would look for it only if some budget were left, and it grows by the tokens that are forced at its start."""
        match request.status:
            case RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR:
                return bool(self._scheduler._handle_blocked_waiting_request(request))
            case RequestStatus.WAITING_FOR_STREAMING_REQ:
                return False
            case _:
                return True

    def _rest(self, resting: Sequence[Request], running: Sequence[Request]) -> None:
        """Until the step after the one that is about to be scheduled."""
        step = self._scheduler.current_step + 1
        for request in resting:
            request.next_decode_eligible_step = max(request.next_decode_eligible_step, step + 1)
        rested = {request.request_id: self._ran.get(request.request_id, 0) for request in resting}
        self._ran = {**rested, **dict.fromkeys((request.request_id for request in running), step)}


def _left(request: Request) -> int:
    """Tokens that it has and that are not computed yet."""
    left: int = request.num_tokens_with_spec + request.num_output_placeholders - request.num_computed_tokens
    return max(left, 1)


def _work(requests: Sequence[Request]) -> Work:
    return Work(len(requests), sum(map(_left, requests)) - len(requests))
