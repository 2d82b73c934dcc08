"""Workers that take forced tokens in, and masks from frames (vLLM 0.32: `v1/worker/cpu_worker.py`, `v1/worker/gpu_worker.py`, first model
runner).

A model runner keeps the tokens of its requests itself and hears from the scheduler only how many of them to compute, since
it has sampled all output tokens. Forced ones it has not: they are written where the sampled ones stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.gpu_worker import Worker

from model_service.engine.core_options import core_options
from model_service.engine.workers.mask_output import MaskParts
from model_service.engine.workers.waiting import wait_asleep
from model_service.engine.workers.worker_masks import WorkerMasks
from model_service.jump_forward.forced import FORCED, ForcedTokens
from model_service.masks.frames.logits import warm_up
from model_service.shared_memory import MemoryAddress


class Masking:
    """To be put before one of vLLM's workers. Its methods are called by name, by the executor in the engine core."""

    model_runner: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._masks = WorkerMasks()

    def attach_masks(self, address: MemoryAddress) -> bool:
        """Whether the ring is mapped from now on."""
        return self._masks.attach(address)

    def mask_counts(self) -> dict[str, int]:
        return dict(self._masks.counts)

    @torch.inference_mode()
    def sample_tokens(self, grammar_output: GrammarOutput | MaskParts | None) -> Any:
        if isinstance(grammar_output, MaskParts):
            self._masks.apply(grammar_output, self.model_runner)
            grammar_output = None
        return super().sample_tokens(grammar_output)  # type: ignore[misc]  # the worker's


class MaskcastCPUWorker(Masking, CPUWorker):
    """Also keeps seeded requests from ending the worker: where a step computes only a part of such a request, vLLM takes its generator
    back by an offset, which a CPU's generators do not have."""

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        if vllm_config.parallel_config.world_size > 1:
            wait_asleep()
        super().__init__(vllm_config, *args, **kwargs)

    def init_device(self) -> None:
        super().init_device()
        hook_updates(self.model_runner)

    def sample_tokens(self, grammar_output: GrammarOutput | MaskParts | None) -> Any:
        generators = self.model_runner.input_batch.generators
        # Nothing is sampled for these, so that their generators must stay as they are.
        unsampled = [row for row in generators if self.model_runner.discard_request_mask.np[row]]
        aside = {row: generators.pop(row) for row in unsampled}
        try:
            return super().sample_tokens(grammar_output)
        finally:
            generators.update(aside)


class MaskcastWorker(Masking, Worker):
    def init_device(self) -> None:
        super().init_device()
        hook_updates(self.model_runner)

    def compile_or_warm_up_model(self) -> Any:
        times = super().compile_or_warm_up_model()
        if core_options(self.vllm_config).broadcaster is not None:
            warm_up(self.model_config.get_vocab_size(), self.model_config.head_dtype, self.device)
        return times


def hook_updates(runner: Any) -> None:
    """Let the runner take forced tokens in whenever it updates its requests."""
    runner._update_states = _taking_forced(runner, runner._update_states)


def _taking_forced(runner: Any, update: Callable[[SchedulerOutput], Any]) -> Callable[[SchedulerOutput], Any]:
    def update_states(output: SchedulerOutput) -> Any:
        forced: Mapping[str, ForcedTokens] = getattr(output, FORCED, {})
        # Before: what is decided by the number of output tokens is decided in the update.
        known = [request_id for request_id in forced if request_id in runner.requests]
        for request_id in known:
            _extend(runner, request_id, forced[request_id])
        result = update(output)
        for request_id in forced.keys() - known:
            _extend(runner, request_id, forced[request_id])
        return result

    return update_states


def _extend(runner: Any, request_id: str, forced: ForcedTokens) -> None:
    request, batch = runner.requests[request_id], runner.input_batch
    if len(request.output_token_ids) != forced.start:
        raise RuntimeError(f"the worker has {len(request.output_token_ids)} output tokens of {request_id}, the scheduler {forced.start}")
    start = request.num_tokens
    request.output_token_ids.extend(forced.tokens)
    row = batch.req_id_to_index.get(request_id)
    if row is not None:
        batch.token_ids_cpu[row, start : request.num_tokens] = forced.tokens
        batch.is_token_ids[row, start : request.num_tokens] = True
        batch.num_tokens_no_spec[row] = request.num_tokens
