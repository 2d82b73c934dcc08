"""An engine core without a model, in the replica's own process (vLLM 0.32: `v1/engine/core_client.py`): all that stands in front of the
engine is real, and the engine itself takes next to nothing of the processors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from transformers import AutoTokenizer
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, EngineCoreRequest, FinishReason
from vllm.v1.engine.core_client import EngineCoreClient
from vllm.v1.outputs import LogprobsLists

STEPS_PER_S = 50
TEXT = "a"


@dataclass(slots=True)
class Running:
    """`logprobs` of so many further tokens are asked for; None: of none."""

    tokens_left: int
    logprobs: int | None


class CoreStandIn:
    """What `AsyncLLM` asks of its engine core: every running request gets the same token in each step. There are `steps_per_s`, or fewer
    where the process has no time for them."""

    def __init__(self, token: int, logits_width: int, steps_per_s: float = STEPS_PER_S) -> None:
        self.engine_ranks_managed = [0]
        self.resources = SimpleNamespace(engine_dead=False)
        self._token = token
        self._logits_width = logits_width
        self._period_s = 1 / steps_per_s
        self._next = time.monotonic()
        self._running: dict[str, Running] = {}
        self._some = asyncio.Event()

    async def get_supported_tasks_async(self) -> tuple[str, ...]:
        return ("generate",)

    async def add_request_async(self, request: EngineCoreRequest) -> None:
        self._running[request.request_id] = Running(request.sampling_params.max_tokens or 1, request.sampling_params.logprobs)
        self._some.set()

    async def abort_requests_async(self, request_ids: Sequence[str]) -> None:
        for request_id in request_ids:
            self._running.pop(request_id, None)

    async def collective_rpc_async(self, method: str, *_: Any) -> list[int]:
        """Of its one worker, who is asked for the width of its logits when the engine starts."""
        if method != "logits_width":
            raise NotImplementedError(method)
        return [self._logits_width]

    async def reset_mm_cache_async(self) -> None:
        """There is none."""

    async def get_output_async(self) -> EngineCoreOutputs:
        """The next step's."""
        self._next = max(self._next + self._period_s, time.monotonic())
        await asyncio.sleep(self._next - time.monotonic())
        while not self._running:
            self._some.clear()
            await self._some.wait()
        return EngineCoreOutputs(outputs=list(self._step()))

    def shutdown(self, timeout: float | None = None) -> None:
        """Nothing runs."""

    def _step(self) -> Iterator[EngineCoreOutput]:
        for request_id, running in list(self._running.items()):
            running.tokens_left -= 1
            ended = running.tokens_left <= 0
            if ended:
                del self._running[request_id]
            told = None if running.logprobs is None else _certain(self._token, running.logprobs)
            yield EngineCoreOutput(request_id, [self._token], told, finish_reason=FinishReason.LENGTH if ended else None)


def _certain(token: int, more: int) -> LogprobsLists:
    """The token itself, and as many more beside it."""
    ids = np.full((1, 1 + more), token, dtype=np.int32)
    return LogprobsLists(ids, np.zeros((1, 1 + more), dtype=np.float32), np.ones(1, dtype=np.int32))


def stand_in() -> None:
    """From now on engines of this process have one in place of a core."""

    def make(vllm_config: Any, *_: Any, **__: Any) -> CoreStandIn:
        vllm_config.cache_config.num_gpu_blocks = 1
        tokenizer = AutoTokenizer.from_pretrained(vllm_config.model_config.tokenizer)
        token = tokenizer.encode(TEXT, add_special_tokens=False)[-1]
        return CoreStandIn(token, vllm_config.model_config.get_vocab_size())

    EngineCoreClient.make_async_mp_client = staticmethod(make)
