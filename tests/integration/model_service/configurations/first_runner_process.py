"""Forced tokens in vLLM's first model runner: in its class for GPUs, on a processor's tensors, and in the one for processors. A process of
its own, since the latter takes streams and events out of torch:
`python -m tests.integration.model_service.configurations.first_runner_process` plays random requests on both at once, and prints how many
tokens were forced. Each forward is to be given the tokens that stand at its places in the end, by both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from model_service.engine.environment import prepare_environment
from tests.integration.model_service.configurations.played_requests import BUDGET, PLACES, ROWS, Given, Play, PlayedRequest
from tests.integration.model_service.running_engine import SETTINGS

BLOCK = 32
EXAMPLES = 40


class Runner:
    """One of vLLM's, with our hook, around a forward that is not there."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._gone: set[str] = set()

    def step(self, batch: Sequence[PlayedRequest], lengths: Mapping[str, int], sampled: Sequence[int]) -> tuple[Given, list[int]]:
        runner = self._runner
        output = _scheduled(batch, lengths, self._gone)
        self._gone = set()
        found = prepared(runner, output)
        taken = kept(runner, output, dict(zip(lengths, sampled, strict=True)))
        by_name = dict(zip(runner.input_batch.req_ids, map(len, taken), strict=True))
        return found, [by_name[name] for name in lengths]

    def check(self, request: PlayedRequest) -> None:
        runner, tokens = self._runner, request.tokens
        batch, state = runner.input_batch, runner.requests[request.name]
        row = batch.req_id_to_index[request.name]
        assert state.output_token_ids == tokens[request.prompt :], request.name
        assert batch.req_output_token_ids[row] == tokens[request.prompt :], request.name
        assert batch.token_ids_cpu[row, : len(tokens)].tolist() == tokens, request.name
        assert batch.is_token_ids[row, : len(tokens)].all(), request.name
        assert batch.num_tokens_no_spec[row] == len(tokens), request.name

    def ended(self, request: PlayedRequest) -> None:
        self._gone.add(request.name)

    def preempted(self, request: PlayedRequest) -> None:
        """It is told so when the request comes again."""


class Both:
    """Two that must not differ in anything."""

    def __init__(self, first: Runner, second: Runner) -> None:
        self._runners = first, second

    def step(self, batch: Sequence[PlayedRequest], lengths: Mapping[str, int], sampled: Sequence[int]) -> tuple[Given, list[int]]:
        first, second = (runner.step(batch, lengths, sampled) for runner in self._runners)
        assert first == second
        return first

    def check(self, request: PlayedRequest) -> None:
        for runner in self._runners:
            runner.check(request)

    def ended(self, request: PlayedRequest) -> None:
        for runner in self._runners:
            runner.ended(request)

    def preempted(self, request: PlayedRequest) -> None:
        for runner in self._runners:
            runner.preempted(request)


def prepared(runner: Any, output: Any) -> Given:
    """What a forward of the step is given."""
    runner._update_states(output)
    ids = list(runner.input_batch.req_ids)
    assert set(ids) == set(output.num_scheduled_tokens)
    if not ids:
        return {}
    counts = np.array([output.num_scheduled_tokens[name] for name in ids], dtype=np.int32)
    runner._prepare_inputs(output, counts)
    ends = np.cumsum(counts)
    spans = zip(ids, (ends - counts).tolist(), ends.tolist(), strict=True)
    return {name: (runner.input_ids.gpu[low:high].tolist(), runner.positions[low:high].tolist()) for name, low, high in spans}


def kept(runner: Any, output: Any, tokens: Mapping[str, int]) -> list[list[int]]:
    """What the runner takes of the tokens that its sampler has made."""
    import torch

    made = torch.tensor([[tokens[name]] for name in runner.input_batch.req_ids], dtype=torch.int32)
    total, sampled = output.total_num_scheduled_tokens, SimpleNamespace(sampled_token_ids=made, logprobs_tensors=None)
    taken: list[list[int]] = runner._bookkeeping_sync(output, sampled, None, torch.zeros(total, 1), total)[3]
    return taken


def _ignore(*_: Any) -> None: ...


def _scheduled(batch: Sequence[PlayedRequest], lengths: Mapping[str, int], gone: set[str]) -> Any:
    """What vLLM's scheduler tells of such a step."""
    from vllm.v1.core.sched.output import CachedRequestData, SchedulerOutput

    from model_service.jump_forward.forced import FORCED

    known = [request for request in batch if request.is_known]
    cached = CachedRequestData(
        req_ids=[request.name for request in known],
        resumed_req_ids={request.name for request in known if not request.is_running},
        new_token_ids=[],
        all_token_ids={request.name: list(request.tokens) for request in known if not request.is_running},
        new_block_ids=[None if request.is_running else _blocks() for request in known],
        num_computed_tokens=[request.computed for request in known],
        num_output_tokens=[len(request.tokens) - request.prompt for request in known],
    )
    output = SchedulerOutput.make_empty()
    output.scheduled_new_reqs = [_new(request) for request in batch if not request.is_known]
    output.scheduled_cached_reqs = cached
    output.num_scheduled_tokens = dict(lengths)
    output.total_num_scheduled_tokens = sum(lengths.values())
    output.finished_req_ids = set(gone)
    setattr(output, FORCED, {request.name: request.unsent for request in batch if request.unsent is not None})
    return output


def _blocks() -> tuple[list[int], ...]:
    """As many as a request can need."""
    return (list(range(1, PLACES // BLOCK + 1)),)


def _new(request: PlayedRequest) -> Any:
    from vllm.sampling_params import SamplingParams
    from vllm.v1.core.sched.output import NewRequestData

    penalty = 0.1 if request.is_penalized else 0.0
    params = SamplingParams(max_tokens=PLACES, frequency_penalty=penalty)
    prompt = request.tokens[: request.prompt]
    return NewRequestData(request.name, prompt, [], params, None, _blocks(), request.computed, None, prefill_token_ids=list(request.tokens))


@contextmanager
def configured(seats: int, **arguments: Any) -> Iterator[Any]:
    """vLLM's configuration, in force in this process, for workers of a CPU."""
    import vllm.v1.worker.cpu.shm  # noqa: F401  # ahead of all other workers
    from vllm.config import set_current_vllm_config
    from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment

    from model_service.engine.arguments import parse_arguments
    from model_service.engine.configuration import stock_config

    prepare_environment(SETTINGS)
    config = stock_config(parse_arguments(replace(SETTINGS, max_num_seqs=seats, engine_args={"block_size": BLOCK, **arguments})))
    with set_current_vllm_config(config), TemporaryDirectory() as folder:
        init_distributed_environment(1, 0, f"file://{Path(folder) / 'store'}", 0, "gloo")
        ensure_model_parallel_initialized(1, 1)
        yield config


def gpu_runner(config: Any) -> Any:
    """vLLM's class for GPUs, on a processor's tensors, without a cache and with our hook."""
    import torch
    from vllm.v1.worker.cpu_model_runner import _torch_cuda_wrapper
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    with _torch_cuda_wrapper():
        return _hooked(GPUModelRunner(config, torch.device("cpu")))


def _hooked(runner: Any) -> Any:
    from model_service.engine.workers.forced_tokens import hook_updates

    runner.kv_cache_config = SimpleNamespace(kv_cache_groups=[])  # no attention wants the batch in an order of its own
    runner.input_batch.block_table.compute_slot_mapping = _ignore  # a kernel, for a cache that is not there
    hook_updates(runner)
    return runner


@contextmanager
def runners() -> Iterator[Callable[[], Both]]:
    """Makes new ones."""
    arguments = {"max_model_len": PLACES, "max_num_batched_tokens": BUDGET, "enable_chunked_prefill": True}
    with configured(ROWS, **arguments) as config:
        import torch
        from vllm.v1.worker.cpu_model_runner import CPUModelRunner

        yield lambda: Both(Runner(gpu_runner(config)), Runner(_hooked(CPUModelRunner(config, torch.device("cpu")))))


def main() -> None:
    forced = []
    with runners() as made:

        @settings(max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate])
        @given(st.randoms(use_true_random=True))
        def plays(chance: Random) -> None:
            play = Play(made(), chance)
            play.run()
            forced.append(play.forced)

        plays()
    print(sum(forced))


if __name__ == "__main__":
    main()
