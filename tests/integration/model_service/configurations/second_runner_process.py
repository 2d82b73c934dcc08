"""Forced tokens in vLLM's second model runner, by its own kernels. A process of its own, since these are to be interpreted:
`python -m tests.integration.model_service.configurations.second_runner_process SEED…` plays random requests, and ends well if each forward
was given the tokens that stand at its places in the end."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.integration.model_service.configurations.played_requests import BUDGET, PLACES, ROWS, VOCABULARY, Given, Play, PlayedRequest


class States:
    """vLLM's states of so many requests at a time, of so many places each, and its kernels, around a forward that is not there; what the
    runner does between them is its own code."""

    def __init__(self, rows: int = ROWS, places: int = PLACES, budget: int = BUDGET, vocabulary: int = VOCABULARY) -> None:
        import torch
        from vllm.v1.worker.gpu.input_batch import InputBuffers
        from vllm.v1.worker.gpu.sample.penalties import PenaltiesState
        from vllm.v1.worker.gpu.states import RequestState

        device = torch.device("cpu")
        self.requests = RequestState(rows, places, budget, 0, vocabulary, device)
        self.requests.draft_tokens = torch.zeros(rows, 1, dtype=torch.int64)  # kernels want a stride
        self.buffers = InputBuffers(rows, budget, device)
        self.penalties = PenaltiesState(None, self.requests)
        self.runner = _runner(self.requests, self.penalties)

    def prepared(self, output: Any, lengths: Mapping[str, int]) -> Given:
        """What the forward of a step is given."""
        from vllm.v1.worker.gpu import input_batch as kernels

        self.runner.add_requests(output)
        self.runner.update_requests(output)
        states, buffers = self.requests, self.buffers
        rows, starts, ends, _ = self._batch(lengths)
        prefill, computed, tokens = states.prefill_len.gpu, states.num_computed_tokens.gpu, states.all_token_ids.gpu
        kernels.prepare_prefill_inputs(buffers.input_ids, states.next_prefill_tokens, rows, starts, tokens, prefill, computed)
        kernels.prepare_pos_seq_lens(rows, starts, computed, buffers.positions, buffers.seq_lens)
        seen, last = buffers.seq_lens[: len(rows)], states.last_sampled_tokens
        drafts = states.draft_tokens
        kernels.combine_sampled_and_draft_tokens(buffers.input_ids, rows, last, starts, seen, prefill, drafts, ends, len(rows), 1)
        spans = zip(lengths, pairwise(starts.tolist()), strict=True)
        return {name: (buffers.input_ids[low:high].tolist(), buffers.positions[low:high].tolist()) for name, (low, high) in spans}

    def kept(self, lengths: Mapping[str, int], sampled: Sequence[int]) -> list[int]:
        """How many of its tokens, one for each request of the step, the runner takes: none of those who are amid their prompts."""
        import torch
        from vllm.v1.worker.gpu import input_batch as kernels

        states = self.requests
        rows, starts, ends, one = self._batch(lengths)
        seen, last, counts = self.buffers.seq_lens[: len(rows)], states.last_sampled_tokens, self.penalties.output_bin_counts
        computed, tokens = states.num_computed_tokens.gpu, states.all_token_ids.gpu
        count, rejected = kernels.get_num_sampled_and_rejected(one, seen, ends, rows, states.prefill_len.gpu)
        made = torch.tensor([[token] for token in sampled])
        kernels.post_update(rows, computed, last, counts, made, count, rejected, starts, tokens, states.total_len.gpu)
        taken: list[int] = count.tolist()
        return taken

    def _batch(self, lengths: Mapping[str, int]) -> tuple[Any, Any, Any, Any]:
        import torch

        rows = torch.tensor([self.requests.req_id_to_index[name] for name in lengths], dtype=torch.int64)
        starts = torch.tensor([0, *np.cumsum(list(lengths.values()))], dtype=torch.int32)
        return rows, starts, torch.arange(len(rows) + 1, dtype=torch.int32), torch.ones(len(rows), dtype=torch.int32)


class Runner:
    """A played request's worker."""

    def __init__(self) -> None:
        self.of_vllm = States()
        self.states, self.penalties = self.of_vllm.requests, self.of_vllm.penalties

    def step(self, batch: Sequence[PlayedRequest], lengths: Mapping[str, int], sampled: Sequence[int]) -> tuple[Given, list[int]]:
        given = self.of_vllm.prepared(_scheduled(batch, lengths), lengths)
        return given, self.of_vllm.kept(lengths, sampled)

    def ended(self, request: PlayedRequest) -> None:
        self.states.remove_request(request.name)

    def preempted(self, request: PlayedRequest) -> None:
        """It comes again with all of its tokens."""
        self.states.remove_request(request.name)

    def check(self, request: PlayedRequest) -> None:
        """The request's tokens on the device, how many they are, and where there are penalties, counts of its output."""
        row = self.states.req_id_to_index[request.name]
        assert self.states.all_token_ids.gpu[row, : len(request.tokens)].tolist() == request.tokens, request.name
        assert int(self.states.total_len.gpu[row]) == len(request.tokens), request.name
        if request.is_penalized:
            counted = np.bincount(request.tokens[request.prompt :], minlength=VOCABULARY)
            assert self.penalties.output_bin_counts[row].tolist() == counted.tolist(), request.name


def _runner(states: Any, penalties: Any) -> Any:
    """vLLM's runner, less all that has nothing to do with tokens, with our hook."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    from model_service.engine.workers.second_runner import hook_additions

    nothing = SimpleNamespace(add_request=_ignore, apply_staged_writes=_ignore, append_block_ids=_ignore)
    added, applied = penalties.add_request, penalties.apply_staged_writes
    sampler = SimpleNamespace(penalties_state=penalties, add_request=added, apply_staged_writes=applied)
    parts = dict.fromkeys(("model_state", "block_tables", "lora_state", "prompt_logprobs_worker"), nothing)
    absent = dict.fromkeys(("adaptive_verification", "pooling_runner", "encoder_cache", "kv_block_zeroer"))
    runner = SimpleNamespace(req_states=states, sampler=sampler, is_last_pp_rank=True, **parts, **absent)
    runner._remove_request = states.remove_request
    runner.add_requests = lambda output: GPUModelRunner.add_requests(runner, output)
    runner.update_requests = lambda output: GPUModelRunner.update_requests(runner, output)
    hook_additions(runner)
    return runner


def _ignore(*_: Any, **__: Any) -> None: ...


def _scheduled(batch: Sequence[PlayedRequest], lengths: Mapping[str, int]) -> SimpleNamespace:
    """What vLLM's scheduler tells of such a step."""
    from model_service.jump_forward.forced import FORCED

    running = [request for request in batch if request.is_running]
    cached = SimpleNamespace(
        req_ids=[request.name for request in running],
        num_computed_tokens=[request.computed for request in running],
        new_block_ids=[None] * len(running),
    )
    new = [_new(request) for request in batch if not request.is_running]
    forced = {FORCED: {request.name: request.unsent for request in batch if request.unsent is not None}}
    lacking = {"new_block_ids_to_zero": None, "kv_cache_block_copies": None}
    return SimpleNamespace(scheduled_new_reqs=new, scheduled_cached_reqs=cached, num_scheduled_tokens=lengths, **forced, **lacking)


def _new(request: PlayedRequest) -> SimpleNamespace:
    penalty = 0.1 if request.is_penalized else 0.0
    params = SimpleNamespace(max_tokens=PLACES, repetition_penalty=1.0, frequency_penalty=penalty, presence_penalty=penalty)
    tokens = {"prefill_token_ids": list(request.tokens), "prompt_token_ids": request.tokens[: request.prompt], "prompt_len": request.prompt}
    lacking: dict[str, Any] = {"block_ids": (), "lora_request": None, "mm_features": []}
    return SimpleNamespace(req_id=request.name, num_computed_tokens=0, sampling_params=params, **tokens, **lacking)


def main(seeds: list[int]) -> None:
    import vllm.v1.worker.cpu.shm  # noqa: F401  # pinned memory and streams, for a processor

    plays = [Play(Runner(), random.Random(seed), f"{seed}-") for seed in seeds]
    for play in plays:
        play.run()
    print(sum(play.forced for play in plays))


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]])
