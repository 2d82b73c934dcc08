"""Forced tokens in vLLM's second model runner, by its own kernels. A process of its own, since these are to be interpreted:
`python -m tests.integration.model_service.configurations.second_runner_process SEED…` plays random requests, and ends well if each forward
was given the tokens that stand at its places in the end."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

PLACES, ROWS, BUDGET, VOCABULARY = 96, 4, 24, 500
Given = dict[str, tuple[list[int], list[int]]]
"""By request: the tokens and the places of a forward."""


@dataclass
class Request:
    """As a scheduler knows it: all tokens so far, and how many of them have been computed. `length`: where it ends; `given`: what token a
    forward was given at each place."""

    name: str
    tokens: list[int]
    length: int
    prompt: int
    is_penalized: bool
    computed: int = 0
    is_running: bool = False
    unsent: Any = None
    given: dict[int, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return len(self.tokens) >= self.length


class Runner:
    """vLLM's states and kernels around a forward that is not there; what the runner does between them is its own code."""

    def __init__(self) -> None:
        import torch
        from vllm.v1.worker.gpu.input_batch import InputBuffers
        from vllm.v1.worker.gpu.sample.penalties import PenaltiesState
        from vllm.v1.worker.gpu.states import RequestState

        device = torch.device("cpu")
        self.states = RequestState(ROWS, PLACES, BUDGET, 0, VOCABULARY, device)
        self.states.draft_tokens = torch.zeros(ROWS, 1, dtype=torch.int64)  # kernels want a stride
        self.buffers = InputBuffers(ROWS, BUDGET, device)
        self.penalties = PenaltiesState(None, self.states)
        self.runner = _runner(self.states, self.penalties)

    def step(self, output: Any, sampled: list[int]) -> tuple[Given, list[int]]:
        """What the forward is given, and how many tokens each request samples, of those in `sampled`."""
        import torch
        from vllm.v1.worker.gpu import input_batch as kernels

        self.runner.add_requests(output)
        self.runner.update_requests(output)
        states, buffers, lengths = self.states, self.buffers, output.num_scheduled_tokens
        rows = torch.tensor([states.req_id_to_index[name] for name in lengths], dtype=torch.int64)
        starts = torch.tensor([0, *np.cumsum(list(lengths.values()))], dtype=torch.int32)
        ends, one = torch.arange(len(rows) + 1, dtype=torch.int32), torch.ones(len(rows), dtype=torch.int32)
        prefill, computed, tokens = states.prefill_len.gpu, states.num_computed_tokens.gpu, states.all_token_ids.gpu
        kernels.prepare_prefill_inputs(buffers.input_ids, states.next_prefill_tokens, rows, starts, tokens, prefill, computed)
        kernels.prepare_pos_seq_lens(rows, starts, computed, buffers.positions, buffers.seq_lens)
        seen, last = buffers.seq_lens[: len(rows)], states.last_sampled_tokens
        drafts = states.draft_tokens
        kernels.combine_sampled_and_draft_tokens(buffers.input_ids, rows, last, starts, seen, prefill, drafts, ends, len(rows), 1)
        spans = zip(lengths, pairwise(starts.tolist()), strict=True)
        given = {name: (buffers.input_ids[low:high].tolist(), buffers.positions[low:high].tolist()) for name, (low, high) in spans}
        count, rejected = kernels.get_num_sampled_and_rejected(one, seen, ends, rows, prefill)
        made, counts = torch.tensor([[token] for token in sampled]), self.penalties.output_bin_counts
        kernels.post_update(rows, computed, last, counts, made, count, rejected, starts, tokens, states.total_len.gpu)
        return given, count.tolist()

    def check(self, request: Request) -> None:
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


class Play:
    """Requests of one seed, scheduled at random."""

    def __init__(self, runner: Runner, seed: int) -> None:
        self._runner = runner
        self._chance = random.Random(seed)
        self.requests = list(self._made(seed))
        self.forced = 0

    def run(self) -> None:
        while waiting := [request for request in self.requests if not request.is_over]:
            self._preempt([request for request in waiting if request.is_running])
            if lengths := self._chosen(waiting):
                self._step([request for request in waiting if request.name in lengths], lengths)
        for request in self.requests:
            assert request.given == dict(enumerate(request.tokens[: request.computed])), request.name

    def _made(self, seed: int) -> Iterator[Request]:
        for number in range(ROWS + 2):
            prompt = self._words(1, 30)
            length = len(prompt) + self._chance.randint(2, 40)
            yield Request(f"{seed}-{number}", prompt, length, len(prompt), is_penalized=self._chance.random() < 0.5)

    def _words(self, least: int, most: int) -> list[int]:
        return [self._chance.randrange(VOCABULARY) for _ in range(self._chance.randint(least, most))]

    def _preempt(self, running: list[Request]) -> None:
        for request in running:
            if self._chance.random() < 0.05:
                # What its worker has not been told comes again with all of its tokens.
                self._runner.states.remove_request(request.name)
                request.is_running, request.computed = False, 0
                request.given.clear()

    def _chosen(self, waiting: list[Request]) -> dict[str, int]:
        """How many tokens of whom are computed."""
        seats, budget, lengths = ROWS - sum(request.is_running for request in waiting), BUDGET, {}
        for request in waiting:
            most = min(len(request.tokens) - request.computed, budget)
            if not most or self._chance.random() < 0.3 or not (request.is_running or seats):
                continue
            seats -= not request.is_running
            lengths[request.name] = self._chance.choice([most, self._chance.randint(1, most)])
            budget -= lengths[request.name]
        return lengths

    def _step(self, batch: list[Request], lengths: dict[str, int]) -> None:
        sampled = self._words(len(batch), len(batch))
        given, counts = self._runner.step(_scheduled(batch, lengths), sampled)
        for request, token, count in zip(batch, sampled, counts, strict=True):
            words, places = given[request.name]
            request.given.update(zip(places, words, strict=True))
            request.is_running, request.unsent = True, None
            request.computed += lengths[request.name]
            assert count == (request.computed == len(request.tokens)), request.name
            if count:
                request.tokens.append(token)
            self._runner.check(request)
            if count:
                self._force(request)
            if request.is_over:
                self._runner.states.remove_request(request.name)
                request.is_running = False

    def _force(self, request: Request) -> None:
        from model_service.jump_forward.forced import ForcedTokens

        if not request.is_over and self._chance.random() < 0.5:
            forced = self._words(1, 12)
            request.unsent = ForcedTokens(len(request.tokens) - request.prompt, tuple(forced))
            request.tokens += forced
            self.forced += len(forced)


def _scheduled(batch: list[Request], lengths: dict[str, int]) -> SimpleNamespace:
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


def _new(request: Request) -> SimpleNamespace:
    penalty = 0.1 if request.is_penalized else 0.0
    params = SimpleNamespace(max_tokens=PLACES, repetition_penalty=1.0, frequency_penalty=penalty, presence_penalty=penalty)
    tokens = {"prefill_token_ids": list(request.tokens), "prompt_token_ids": request.tokens[: request.prompt], "prompt_len": request.prompt}
    lacking: dict[str, Any] = {"block_ids": (), "lora_request": None, "mm_features": []}
    return SimpleNamespace(req_id=request.name, num_computed_tokens=0, sampling_params=params, **tokens, **lacking)


def main(seeds: list[int]) -> None:
    import vllm.v1.worker.cpu.shm  # noqa: F401  # pinned memory and streams, for a processor

    plays = [Play(Runner(), seed) for seed in seeds]
    for play in plays:
        play.run()
    print(sum(play.forced for play in plays))


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]])
