"""The other processes of the mask path: workers that mask their logits, and the broadcaster (vLLM 0.32)."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import torch
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
from vllm.v1.structured_output.utils import apply_grammar_bitmask

from model_service.engine.workers.mask_output import MaskParts
from model_service.engine.workers.worker_masks import WorkerMasks
from model_service.masks.broadcaster import MaskBroadcaster
from model_service.shared_memory import MemoryAddress


@dataclass(frozen=True, slots=True)
class Batch:
    """A forward has left logits for these requests, in this order, with these drafts."""

    request_ids: Sequence[str]
    drafts: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Masked:
    """`seconds`: from the message to the masked logits; `digest`: of which logits are minus infinity, where it was asked for."""

    seconds: float
    digest: int | None


class LogitsWorker:
    """One tensor-parallel worker. A message tells it what to do; how masks reach it is vLLM's own message queue, or ours on top of it."""

    def __init__(self, queue: MessageQueue) -> None:
        self._queue = queue
        self._masks = WorkerMasks(most_rows=1)  # which matters to a GPU only
        self._logits = torch.empty(0)

    def reserve(self, rows: int, vocab_size: int) -> None:
        self._logits = torch.zeros(rows, vocab_size)

    def attach(self, address: MemoryAddress) -> bool:
        return self._masks.attach(address)

    def mask(self, batch: Batch, checked: bool) -> Masked:
        """The message with the masks has been sent: as when a forward ends after it."""
        if checked:
            self._logits.zero_()
        places = {request_id: row for row, request_id in enumerate(batch.request_ids)}
        scheduled = SimpleNamespace(scheduled_spec_decode_tokens=batch.drafts)
        runner = SimpleNamespace(
            execute_model_state=SimpleNamespace(scheduler_output=scheduled, logits=self._logits),
            input_batch=SimpleNamespace(req_ids=list(batch.request_ids), req_id_to_index=places),
        )
        started = time.perf_counter()
        _, (masks,), _, _ = self._queue.dequeue()
        if isinstance(masks, MaskParts):
            self._masks.apply(masks, runner)
        else:
            apply_grammar_bitmask(scheduled, masks, runner.input_batch, self._logits)
        seconds = time.perf_counter() - started
        return Masked(seconds, zlib.crc32(torch.isinf(self._logits).numpy().data) if checked else None)

    def cpu_s(self) -> float:
        return time.process_time()


def run_worker(connection: Connection, handle: Any, rank: int) -> None:
    """A process's main function: does what comes over the connection, `(method, arguments)`, until it is closed."""
    torch.set_num_threads(1)
    queue = MessageQueue.create_from_handle(handle, rank)
    queue.wait_until_ready()
    worker = LogitsWorker(queue)
    _serve(connection, worker)


def run_broadcaster(connection: Connection, name: str) -> None:
    broadcaster = MaskBroadcaster(name, 512 << 20)
    broadcaster.start()
    _serve(connection, SimpleNamespace(cpu_s=time.process_time))
    broadcaster.close()


def _serve(connection: Connection, target: Any) -> None:
    connection.send(None)
    while (call := connection.recv()) is not None:
        method, arguments = call
        connection.send(getattr(target, method)(*arguments))
