"""Wherever masks come from, and whether or not a step is scheduled before the one ahead of it is over, requests get the same tokens. Real
schedulers and a real broadcaster; the worker samples without a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pytest
import torch

from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.masks.broadcaster import MaskBroadcaster
from model_service.masks.client import MaskClient
from model_service.settings import EngineSettings
from model_service.shared_memory import MemoryAddress
from tests.integration.model_service.running_engine import SETTINGS, prepared_environment
from tests.offered_grammars import offered_specs
from tests.waiting import until

SPECS = {
    "a" * 64: GrammarSpec(GrammarKind.JSON_SCHEMA, '{"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 9}'),
    "b" * 64: GrammarSpec(GrammarKind.REGEX, "([a-z]{3,7} ){5}end"),
}
STEPPING = replace(SETTINGS, jump_forward=False, engine_args={"enable_prefix_caching": False})
REQUESTS = 6
MOST_TOKENS = 40
BLOCK, BLOCKS = 16, 100


class Worker:
    """Samples what a request's place would have anyway, among what its mask allows."""

    def __init__(self, vocab_size: int) -> None:
        from model_service.engine.workers.mask_output import MaskDelivery
        from model_service.engine.workers.worker_masks import WorkerMasks

        self._vocab_size = vocab_size
        self._masks = WorkerMasks(REQUESTS)
        self._delivery = MaskDelivery(self._attach)

    @property
    def mapped(self) -> int:
        return self._masks.counts["mapped"]

    def sample(self, requests: Mapping[str, Any], output: Any, masks: Any) -> Any:
        from vllm.v1.outputs import ModelRunnerOutput

        from model_service.engine.workers.mask_output import StepMasks

        ids = list(output.num_scheduled_tokens)
        rows = {request_id: row for row, request_id in enumerate(ids)}
        logits = torch.from_numpy(np.array([self._logits(requests[request_id]) for request_id in ids], dtype=np.float32))
        if isinstance(masks, StepMasks):
            state, batch = SimpleNamespace(logits=logits, scheduler_output=output), SimpleNamespace(req_id_to_index=rows)
            self._masks.apply(self._delivery.parts(masks), SimpleNamespace(execute_model_state=state, input_batch=batch))
        elif masks is not None:
            for request_id, mask in zip(masks.structured_output_request_ids, masks.grammar_bitmask, strict=True):
                allowed = np.unpackbits(mask.view(np.uint8), bitorder="little", count=self._vocab_size)
                logits[rows[request_id]].masked_fill_(torch.from_numpy(allowed == 0), -torch.inf)
        sampled = [[] if requests[request_id].is_prefill_chunk else [int(logits[row].argmax())] for request_id, row in rows.items()]
        return ModelRunnerOutput(ids, rows, sampled, pooler_output=[])

    def _logits(self, request: Any) -> npt.NDArray[np.float32]:
        return np.random.default_rng([int(request.request_id), request.num_output_tokens]).random(self._vocab_size, dtype=np.float32)

    def _attach(self, address: MemoryAddress) -> Future[list[bool]]:
        attached: Future[list[bool]] = Future()
        attached.set_result([self._masks.attach(address)])
        return attached


class Core:
    """An engine core's loop (vLLM 0.32: `step` and `step_with_batch_queue` in `v1/engine/core.py`) around one scheduler."""

    def __init__(self, settings: EngineSettings, channel: str, asynchronous: bool) -> None:
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
        from vllm.v1.structured_output import StructuredOutputManager

        from model_service.engine.arguments import parse_arguments
        from model_service.engine.configuration import plug, stock_config
        from model_service.engine.core.async_scheduler import MaskcastAsyncScheduler

        config = plug(stock_config(parse_arguments(settings)), settings, channel)
        config.scheduler_config.async_scheduling = asynchronous
        config.cache_config.num_gpu_blocks = BLOCKS
        attention = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=8, dtype=torch.float32)
        kept = KVCacheConfig(num_blocks=BLOCKS, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], attention)])
        kind = MaskcastAsyncScheduler if asynchronous else config.scheduler_config.get_scheduler_cls()
        self._manager = StructuredOutputManager(config)
        self.scheduler = kind(config, kept, self._manager, block_size=BLOCK, hash_block_size=BLOCK)
        self.worker = Worker(config.model_config.get_vocab_size())
        self.requests: dict[str, Any] = {}

    def begin(self) -> None:
        """Requests of both grammars, which are loaded when it returns."""
        for number in range(REQUESTS):
            self.ask(number, list(SPECS)[number % len(SPECS)])
        self._manager.executor.shutdown(wait=True)

    def ask(self, number: int, key: str) -> None:
        from vllm.sampling_params import SamplingParams
        from vllm.v1.request import Request

        from model_service.engine.key_constraint import key_constraint

        params = SamplingParams(max_tokens=MOST_TOKENS, structured_outputs=key_constraint(key))
        params.update_from_generation_config({}, self._manager.tokenizer.eos_token_id)
        self.requests[str(number)] = request = Request(str(number), [5] * (number + 1), params, None)
        self._manager.grammar_init(request)
        self.scheduler.add_request(request)

    @contextmanager
    def busy_threads(self) -> Iterator[None]:
        """Those that make grammars have something else to do."""
        free = Event()
        threads = self._manager.executor._threads
        for _ in range(threads._max_workers):
            threads.submit(free.wait)
        try:
            yield
        finally:
            free.set()

    def run(self, depth: int, first_scheduled: Callable[[], None]) -> list[tuple[int, ...]]:
        """The output of each request, when all have ended. As many steps are under way at once."""
        first = first_scheduled
        queue: deque[tuple[Any, Any]] = deque()
        while self.scheduler.has_requests() or queue:
            deferred = None
            if self.scheduler.has_requests():
                output = self.scheduler.schedule()
                first()
                first = _nothing
                if output.pending_structured_output_tokens:
                    deferred = output
                else:
                    queue.appendleft(self._sampled(output))
                    if len(queue) < depth:
                        continue
            self.scheduler.update_from_output(*queue.pop())
            if deferred is not None:
                queue.appendleft(self._sampled(deferred))
        return [tuple(request.output_token_ids) for request in self.requests.values()]

    def step(self) -> list[Any]:
        """The outputs of one."""
        outputs = self.scheduler.update_from_output(*self._sampled(self.scheduler.schedule()))
        return [output for client in outputs.values() for output in client.outputs]

    def close(self) -> None:
        self.scheduler.shutdown()

    def _sampled(self, output: Any) -> tuple[Any, Any]:
        return output, self.worker.sample(self.requests, output, self.scheduler.get_grammar_bitmask(output))


def _nothing() -> None:
    """Nobody is waited for."""


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with prepared_environment(replace(SETTINGS, mask_socket="")):
        yield


@pytest.fixture(scope="module")
def channel() -> Iterator[str]:
    with offered_specs(SPECS, GrammarTokenizer.load(SETTINGS.model)) as name:
        yield name


@pytest.fixture(scope="module")
def expected(channel: str) -> list[tuple[int, ...]]:
    with closing(Core(STEPPING, channel, asynchronous=False)) as core:
        core.begin()
        return core.run(1, _nothing)


def test_asynchronous_scheduling_masks_the_same(channel: str, expected: list[tuple[int, ...]]) -> None:
    with closing(Core(STEPPING, channel, asynchronous=True)) as core:
        core.begin()
        assert core.run(2, _nothing) == expected
        assert max(map(len, expected)) == MOST_TOKENS > min(map(len, expected))


def test_a_request_whose_grammar_is_loaded_is_in_the_next_step_and_waits_for_no_thread(channel: str) -> None:
    loaded, other = SPECS
    with closing(Core(STEPPING, channel, asynchronous=False)) as core:
        core.ask(0, loaded)
        until(lambda: bool(core.scheduler.schedule().num_scheduled_tokens))
        with core.busy_threads():
            core.ask(1, other)
            core.ask(2, loaded)
            assert [new.req_id for new in core.scheduler.schedule().scheduled_new_reqs] == ["2"]
        until(lambda: "1" in core.scheduler.schedule().num_scheduled_tokens)


def test_the_outputs_of_a_request_that_is_new_leave_first(channel: str) -> None:
    key = next(iter(SPECS))
    with closing(Core(replace(STEPPING, jump_forward="sync"), channel, asynchronous=False)) as core:
        core.ask(0, key)
        until(lambda: bool(core.step()))
        core.ask(1, key)
        core.ask(2, key)
        assert [output.request_id for output in core.step()] == ["1", "1", "2", "2", "0"]


def _has_ring(client: MaskClient) -> bool:
    link = client._connected()
    return link is not None and link.ring is not None


@pytest.mark.parametrize("asynchronous", [False, True])
def test_masks_of_the_broadcaster_are_the_same(channel: str, expected: list[tuple[int, ...]], asynchronous: bool) -> None:
    check_broadcaster(STEPPING, channel, asynchronous, expected)


def test_they_are_where_a_sample_is_void_since_what_follows_is_forced(channel: str, expected: list[tuple[int, ...]]) -> None:
    with closing(Core(replace(STEPPING, jump_forward="sync"), channel, asynchronous=False)) as core:
        core.begin()
        jumped = core.run(1, _nothing)
    assert jumped != expected
    check_broadcaster(replace(STEPPING, jump_forward="async"), channel, True, jumped)


def check_broadcaster(settings: EngineSettings, channel: str, asynchronous: bool, expected: list[tuple[int, ...]]) -> None:
    with closing(MaskBroadcaster(f"maskcast-test-{uuid4().hex}", 64 << 20)) as broadcaster:
        broadcaster.start()
        settings = replace(settings, mask_socket=broadcaster.name, mask_deadline_ms=60_000)
        with closing(Core(settings, channel, asynchronous)) as core:
            client: MaskClient = core.scheduler.masks._client  # type: ignore[union-attr]  # the broadcaster's
            until(lambda: _has_ring(client))
            core.begin()
            rows: list[tuple[str, tuple[int, ...]]] = [(request_id, ()) for request_id in core.requests]
            all_loaded = partial(until, lambda: _has_ring(client) and len(client._requests.ready(rows)) == REQUESTS)
            assert core.run(2 if asynchronous else 1, all_loaded) == expected
            until(lambda: broadcaster.totals.frames == core.worker.mapped)  # frames are counted after they were told
            assert core.worker.mapped > MOST_TOKENS / 2
