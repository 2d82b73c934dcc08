"""The course of the mask path's benchmark: processes, cells, and steps in turn (vLLM 0.32)."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.structured_output import StructuredOutputManager

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import BenchFailed
from load_tests.masks.arms import FrameMasks, MaskArm, StockMasks
from load_tests.masks.figures import MaskCell, Plan, StepCost
from load_tests.masks.offered import offered
from load_tests.masks.processes import Batch, run_broadcaster, run_worker
from load_tests.masks.requests import MaskRequest, RequestMaker
from load_tests.masks.scenarios import chosen_cases
from load_tests.masks.tekken_model import write_tekken_model
from model_service.masks.client import MaskClient
from model_service.masks.messages import VERSION, Hello
from model_service.shared_memory import MemoryAddress

SEED = 5
CHUNK_BYTES = 16 << 20
"""Of vLLM's message queue, by default."""
UNDRAFTED = 3
"""Times as many steps without drafts, which are over soon and differ more."""
DEADLINE_S = 60.0
"""Nothing may be late here: what a fallback costs is another question."""


class Process:
    """A process that does what it is called for, see `mask_processes`."""

    def __init__(self, main: Any, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=main, args=(theirs, *arguments), daemon=True)
        self._process.start()

    def begin(self, method: str, *arguments: Any) -> None:
        self._connection.send((method, arguments))

    def answer(self) -> Any:
        return self._connection.recv()

    def call(self, method: str, *arguments: Any) -> Any:
        self.begin(method, *arguments)
        return self.answer()

    def close(self) -> None:
        self._connection.send(None)
        self._process.join()


def measured(plan: Plan, folder: Path) -> Iterator[MaskCell]:
    """Every cell of the plan; `folder` is made, with the model whose vocabulary it is."""
    write_tekken_model(folder)
    tokenizer = GrammarTokenizer.load(folder)
    maker = RequestMaker(tokenizer, chosen_cases(), plan.steps * UNDRAFTED + 1 + max(plan.drafts), SEED)
    requests = {scenario: maker.make(scenario, max(plan.requests)) for scenario in plan.scenarios}
    managers = {drafts: _manager(folder, drafts, max(plan.requests)) for drafts in plan.drafts}
    # As vLLM's engine core does: collecting what is there to stay would take milliseconds, now on one side and now on the other.
    gc.collect()
    gc.freeze()
    with offered(maker.grammars.payloads) as channel, _broadcaster() as (name, broadcaster):
        for count in plan.workers:
            with _workers(count) as (queue, workers):
                for drafts in plan.drafts:
                    for size in (size for size in plan.requests if size * (drafts + 1) <= plan.most_rows):
                        hello = Hello(VERSION, "bench", tokenizer.vocab_size, tokenizer.fingerprint, channel, size * (drafts + 1))
                        with closing(MaskClient(name, hello, tokenizer.portable(), deadline_s=DEADLINE_S)) as client:
                            arms: list[MaskArm] = [StockMasks(managers[drafts], queue, tokenizer), FrameMasks(client, queue)]
                            for scenario in plan.scenarios:
                                course = Course(requests[scenario][:size], drafts, workers, broadcaster, tokenizer.vocab_size)
                                for side, steps, cpu_s in course.run(arms, plan.steps * (1 if drafts else UNDRAFTED), client):
                                    yield MaskCell(scenario, size, drafts, count, side, steps, cpu_s)


class Course:
    """Of one cell."""

    def __init__(
        self, requests: Sequence[MaskRequest], drafts: int, workers: Sequence[Process], broadcaster: Process, vocab_size: int
    ) -> None:
        self._requests = requests
        self._drafts = drafts
        self._workers = workers
        self._broadcaster = broadcaster
        self._vocab_size = vocab_size

    def run(self, arms: Sequence[MaskArm], steps: int, client: MaskClient) -> Iterator[tuple[str, list[StepCost], float]]:
        """The steps of each arm and the processor seconds of all its processes. One step more comes first, which is compared and not
        measured."""
        for arm in arms:
            arm.begin(self._requests, self._drafts)
        for worker in self._workers:
            worker.call("reserve", sum(len(request.drafts(0, self._drafts)) + 1 for request in self._requests), self._vocab_size)
            if not worker.call("attach", _ring(client)):
                raise BenchFailed("a worker cannot map the ring")
        costs: dict[str, list[StepCost]] = {arm.name: [] for arm in arms}
        used: dict[str, float] = dict.fromkeys(costs, 0.0)
        for step in range(steps + 1):
            digests = set()
            for arm in arms:
                before = self._cpu_s()
                cost, digest = self._step(arm, step)
                digests.add(digest)
                if step:
                    costs[arm.name].append(cost)
                    used[arm.name] += self._cpu_s() - before
            if len(digests) > 1:
                raise BenchFailed("the sides mask other logits")
        for arm in arms:
            yield arm.name, costs[arm.name], used[arm.name]

    def _step(self, arm: MaskArm, step: int) -> tuple[StepCost, tuple[int | None, ...]]:
        drafts = {request.request_id: request.drafts(step, self._drafts) for request in self._requests} if self._drafts else {}
        accepted = {request.request_id: request.accepted(step - 1) for request in self._requests} if step else {}
        ids = [request.request_id for request in self._requests]
        Random(SEED).shuffle(ids)
        sent = arm.send(drafts, accepted)
        for worker in self._workers:
            worker.begin("mask", Batch(ids, drafts), step == 0)
        masked = [worker.answer() for worker in self._workers]
        cost = StepCost(sent.masks_s, sent.accept_s, sent.filled_s, max(one.seconds for one in masked), sent.worker_bytes)
        return cost, tuple(one.digest for one in masked)

    def _cpu_s(self) -> float:
        others: float = sum(process.call("cpu_s") for process in (self._broadcaster, *self._workers))
        return time.process_time() + others


def _ring(client: MaskClient) -> MemoryAddress:
    if client.link is None or client.link.ring is None:
        raise BenchFailed("the broadcaster is gone")
    return client.link.ring.address


@contextmanager
def _workers(count: int) -> Iterator[tuple[MessageQueue, list[Process]]]:
    queue = MessageQueue(count, count, max_chunk_bytes=CHUNK_BYTES)
    with ExitStack() as stack:
        workers = [stack.enter_context(closing(Process(run_worker, queue.export_handle(), rank))) for rank in range(count)]
        queue.wait_until_ready()
        for worker in workers:
            worker.answer()
        yield queue, workers


@contextmanager
def _broadcaster() -> Iterator[tuple[str, Process]]:
    name = f"maskcast-bench-{uuid4().hex}"
    with closing(Process(run_broadcaster, name)) as process:
        process.answer()
        yield name, process


def _manager(folder: Path, drafts: int, requests: int) -> StructuredOutputManager:
    speculative = {"speculative_config": {"method": "ngram", "num_speculative_tokens": drafts}} if drafts else {}
    config = EngineArgs(str(folder), max_num_seqs=requests, max_model_len=2048, **speculative).create_engine_config()
    manager = StructuredOutputManager(config)
    manager.backend = _xgrammar_backend(config, manager)
    return manager


def _xgrammar_backend(config: Any, manager: StructuredOutputManager) -> Any:
    from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

    return XgrammarBackend(config, manager.tokenizer, config.model_config.get_vocab_size())
