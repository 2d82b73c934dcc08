"""Forced tokens on their way into a model runner (vLLM 0.32: `_update_states` in `v1/worker/gpu_model_runner.py`, first model runner).

A model runner keeps the tokens of its requests itself and hears from the scheduler only how many of them to compute, since
it has sampled all output tokens. Forced ones it has not: they are written where the sampled ones stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vllm.v1.core.sched.output import SchedulerOutput

from model_service.jump_forward.forced import FORCED, ForcedTokens


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
