"""The scheduler of an engine that looks ahead (vLLM 0.32: `v1/core/sched/scheduler.py`): some requests go on with an answer, some verify
drafts of it. All others are scheduled as by the one below it. Synchronous: a verification ends with the step that computes it."""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vllm.v1.core.kv_cache_manager import KVCacheBlocks
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from grammar_service.segments import Segmenter
from model_service.engine.core.lookahead.continuing import Continuing
from model_service.engine.core.lookahead.verifying import Verifying
from model_service.engine.core.scheduler import MaskcastScheduler
from model_service.engine.verification import DRAFTS, SAID, VERIFIED, Asked
from model_service.engine.workers.mask_output import StepMasks

Rows = NDArray[np.int32]


class LookaheadScheduler(MaskcastScheduler):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._verifying = Verifying(self.structured_output_manager, self.requests)
        self._continuing = Continuing()
        if self.jumping is not None:
            self.jumping.context = self._continuing.context

    def add_request(self, request: Request) -> None:
        self._verifying.added(request)
        self._continuing.added(request)
        super().add_request(request)

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        self._continuing.begin_step()
        output = super().schedule(throttle_prefills)
        self._verifying.scheduled(output)
        return output

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> GrammarOutput | StepMasks | None:
        asked: Mapping[str, Asked] = getattr(scheduler_output, VERIFIED, {})
        # With many requests vLLM fills one row for each, unless its configuration has drafts.
        manager = self.structured_output_manager
        threshold = manager.fill_bitmask_parallel_threshold
        manager.fill_bitmask_parallel_threshold = sys.maxsize if asked else threshold
        try:
            masks = super().get_grammar_bitmask(scheduler_output)
        finally:
            manager.fill_bitmask_parallel_threshold = threshold
        if self.jumping is not None and self._continuing and isinstance(masks, GrammarOutput):
            self._force(masks, asked, self.jumping.segmenter)
        return masks

    def _force(self, masks: GrammarOutput, asked: Mapping[str, Asked], segmenter: Segmenter) -> None:
        row = 0
        for request_id in masks.structured_output_request_ids:
            drafts = asked[request_id].drafts if request_id in asked else ()
            end = row + 1 + len(drafts)
            if request_id in self._continuing:
                request = self.requests[request_id]
                _force_rows(masks.grammar_bitmask[row:end], segmenter, request, self._continuing.context(request), drafts)
            row = end

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput) -> dict[int, EngineCoreOutputs]:
        self._verifying.computed(scheduler_output)
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        self._verifying.answer(outputs, model_runner_output)
        return outputs

    def _is_answer(self, request: Request) -> bool:
        extra = (request.sampling_params.extra_args if request.sampling_params is not None else None) or {}
        return SAID not in extra and DRAFTS not in extra

    def _no_tokens(self) -> Container[str]:
        return self._verifying

    def _get_local_prefix_cache_hit(self, request: Request) -> tuple[KVCacheBlocks, int, int, bool]:
        blocks, cached, boundary, diverged = super()._get_local_prefix_cache_hit(request)
        most = self._verifying.cacheable(request, cached, self.block_size)
        if most < cached:
            blocks = self.kv_cache_manager.truncate_computed_blocks(blocks, most)
        return blocks, most, boundary, diverged

    def _reserve_prefill_lookahead(self, request: Request, num_computed_tokens: int, num_new_tokens: int) -> int:
        new = self._verifying.reserved(request, num_computed_tokens, num_new_tokens)
        return int(super()._reserve_prefill_lookahead(request, num_computed_tokens, new))

    def _unblocked(self, request: Request, status: RequestStatus) -> bool:
        allowed = self._continuing.unblocked(request, status)
        if allowed is None:
            request.status = status
            return False
        if not allowed:
            self.grammar_compile_error_reqs.add(request.request_id)
            return False
        # What is forced behind the answer so far is among the drafts.
        return request.request_id in self._verifying or super()._unblocked(request, status)

    def _update_request_with_output(self, request: Request, new_token_ids: list[int], is_stale: bool = False) -> tuple[list[int], bool]:
        if request.request_id in self._verifying:
            self._verifying.check_masks(request)
            # It ends here, and its grammar stands where the drafts begin: it must not be offered what follows them.
            request.structured_output_request = None
        return super()._update_request_with_output(request, new_token_ids, is_stale)

    def _free_request(self, request: Request, delay_free_blocks: bool = False) -> Any:
        self._verifying.ended(request.request_id)
        self._continuing.ended(request.request_id)
        return super()._free_request(request, delay_free_blocks)


def _force_rows(masks: Rows, segmenter: Segmenter, request: Request, said: Sequence[int], drafts: Sequence[int]) -> None:
    """In place: `masks`, int32 `[d + 1, ceil(V / 32)]`, behind `said`, where the request's matcher stands, and behind each of the drafts,
    as far as the grammar allows them.

    An engine that jumps says forced text in one tokenization, where a mask alone leaves several. What is verified must be what would be
    said, also in the middle of what is forced: there the forced token is the only one.
    """
    grammar, taken = request.structured_output_request.grammar, 0
    with grammar.watched():
        matcher = grammar.matcher
        for place, mask in enumerate(masks):
            forced = grammar.forced(partial(segmenter.find, matcher, [*said, *drafts[:place]])).tokens
            if forced:
                _allow_only(mask, forced[0])
            if place == len(drafts) or drafts[place] < 0 or not matcher.accept(drafts[place]):
                break
            taken += 1
        matcher.rollback(taken)


def _allow_only(mask: NDArray[Any], token: int) -> None:
    bits = mask.view(np.uint32)
    bits[:] = 0
    bits[token // 32] = np.uint32(1 << (token % 32))
