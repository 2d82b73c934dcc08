"""Forced tokens on their way into vLLM's second model runner (vLLM 0.32: `v1/worker/gpu/model_runner.py`, `v1/worker/gpu/states.py`,
`v1/worker/gpu/sample/penalties.py`).

It keeps the tokens of its requests on the device: up to a request's `prefill_len` a step reads them from there, and behind it takes what
the step before has sampled. That length may go past the prompt, as it does for a request that is resumed; so forced tokens are written
behind the output, the length is set to their end, and the next forward reads them as it would the rest of a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vllm.v1.core.sched.output import SchedulerOutput

from model_service.jump_forward.forced import FORCED, ForcedTokens


def hook_additions(runner: Any) -> None:
    """Let the runner take forced tokens in whenever it adds requests, which is ahead of each forward."""
    runner.add_requests = _taking_forced(runner, runner.add_requests)


def _taking_forced(runner: Any, add: Callable[[SchedulerOutput], None]) -> Callable[[SchedulerOutput], None]:
    def add_requests(output: SchedulerOutput) -> None:
        forced: Mapping[str, ForcedTokens] = getattr(output, FORCED, {})
        # Requests that are new there, or resumed, come with all of their tokens.
        coming = {new.req_id for new in output.scheduled_new_reqs}
        running = [request_id for request_id in forced if request_id not in coming]
        for request_id in running:
            _stage(runner, request_id, forced[request_id])
        # Once a step, since there are buffers for two steps: where requests come, vLLM does it.
        if running and not coming:
            runner.req_states.apply_staged_writes()
        add(output)

    return add_requests


def _stage(runner: Any, request_id: str, forced: ForcedTokens) -> None:
    states = runner.req_states
    row = states.req_id_to_index[request_id]
    start = int(states.prompt_len.np[row]) + forced.start
    if start <= states.prefill_len.np[row]:
        raise RuntimeError(f"what is forced of {request_id} begins at {start}, and its first {states.prefill_len.np[row]} tokens are known")
    end = start + len(forced.tokens)
    states.all_token_ids.stage_write(row, start, list(forced.tokens))
    states.total_len.stage_write_elem(row, end)
    states.prefill_len.np[row] = end
    penalties = runner.sampler.penalties_state if runner.sampler is not None else None
    if penalties is not None and penalties.use_penalty[row]:
        # Counted anew from the tokens: only sampled ones are counted as they come.
        penalties._new_penalties_reqs.append(row)
