"""Forced tokens on their way into a model runner (vLLM 0.32: `_update_states` in `v1/worker/gpu_model_runner.py`, first model runner).

A model runner keeps the tokens of its requests itself and hears from the scheduler only how many of them to compute, since
it has sampled all output tokens. Forced ones it has not: they are written where the sampled ones stand.

With asynchronous scheduling they come when one more token has been sampled, which is void: they are written over it, and nothing must be
left of it that the next step would take for the request's last token. Whose row is not in the batch is told all of its tokens by vLLM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from vllm.v1.core.sched.output import SchedulerOutput

from model_service.jump_forward.forced import FORCED, ForcedTokens

Take = Callable[[str, ForcedTokens], None]


def hook_updates(runner: Any) -> None:
    """Let the runner take forced tokens in whenever it updates its requests."""
    take = VoidSamples(runner).overwrite if runner.use_async_scheduling else _extending(runner)
    runner._update_states = _taking_forced(runner, runner._update_states, take)


def _taking_forced(runner: Any, update: Callable[[SchedulerOutput], Any], take: Take) -> Callable[[SchedulerOutput], Any]:
    """`take` is for requests that the runner knows."""

    def update_states(output: SchedulerOutput) -> Any:
        forced: Mapping[str, ForcedTokens] = getattr(output, FORCED, {})
        # Before: what is decided by the number of output tokens is decided in the update.
        known = [request_id for request_id in forced if request_id in runner.requests]
        for request_id in known:
            take(request_id, forced[request_id])
        result = update(output)
        for request_id in forced.keys() - known:
            _extend(runner, request_id, forced[request_id])
        return result

    return update_states


class VoidSamples:
    """Of a runner with asynchronous scheduling, whose `sample_tokens` it hooks: a seeded request gets the same tokens whether or not
    samples of it were void."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._generators: dict[str, torch.Tensor] = {}
        runner.sample_tokens = self._remembering(runner.sample_tokens)

    def overwrite(self, request_id: str, forced: ForcedTokens) -> None:
        """Take the request's forced tokens in."""
        request, batch = self._runner.requests[request_id], self._runner.input_batch
        if request_id not in batch.req_id_to_index:
            return
        if len(request.output_token_ids) != forced.start + 1:
            raise RuntimeError(_differing(request, forced))
        request.output_token_ids.pop()
        batch.prev_req_id_to_index.pop(request_id, None)
        if request_id in self._generators:
            request.generator.set_state(self._generators[request_id])
        _extend(self._runner, request_id, forced)

    def _remembering(self, sample: Callable[..., Any]) -> Callable[..., Any]:
        def sample_tokens(*args: Any, **kwargs: Any) -> Any:
            batch = self._runner.input_batch
            self._generators = {batch.req_ids[row]: generator.get_state() for row, generator in batch.generators.items()}
            return sample(*args, **kwargs)

        return sample_tokens


def _extending(runner: Any) -> Take:
    def extend(request_id: str, forced: ForcedTokens) -> None:
        _extend(runner, request_id, forced)

    return extend


def _extend(runner: Any, request_id: str, forced: ForcedTokens) -> None:
    request, batch = runner.requests[request_id], runner.input_batch
    if len(request.output_token_ids) != forced.start:
        raise RuntimeError(_differing(request, forced))
    start = request.num_tokens
    request.output_token_ids.extend(forced.tokens)
    row = batch.req_id_to_index.get(request_id)
    if row is not None:
        batch.token_ids_cpu[row, start : request.num_tokens] = forced.tokens
        batch.is_token_ids[row, start : request.num_tokens] = True
        batch.num_tokens_no_spec[row] = request.num_tokens


def _differing(request: Any, forced: ForcedTokens) -> str:
    return f"the worker has {len(request.output_token_ids)} output tokens of {request.req_id}, the scheduler {forced.start}"
