"""Requests that an engine makes for others of its own (vLLM 0.32: `v1/engine/async_llm.py`, `v1/engine/output_processor.py`).

They go to the engine core and nowhere else: to whoever counts, limits or times requests in front of it there is only the one that they are
made for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from vllm.sampling_params import SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError

from model_service.errors import LookaheadFailed


@dataclass(slots=True)
class _Child:
    answer: asyncio.Future[list[EngineCoreOutput]]
    outputs: list[EngineCoreOutput] = field(default_factory=list)


class Children:
    """Of one engine, between its core's outputs and its output processor."""

    def __init__(self, engine: AsyncLLM) -> None:
        self._engine = engine
        self._numbers = count(1)
        self._children: dict[str, _Child] = {}
        processor = engine.output_processor
        self._process, self._propagate = processor.process_outputs, processor.propagate_error
        processor.process_outputs, processor.propagate_error = self._processed, self._propagated

    def __len__(self) -> int:
        """Those that have not been answered."""
        return len(self._children)

    async def ask(self, parent: EngineCoreRequest, tokens: Sequence[int], params: SamplingParams) -> list[EngineCoreOutput]:
        """All of one's outputs. It has its parent's place in the queue and its part of the prefix cache; cancelled, it ends.

        Raises:
            EngineDeadError: the engine has ended.
            LookaheadFailed: the engine could not compute it.
        """
        if self._engine.errored:
            raise EngineDeadError
        self._engine._run_output_handler()
        request = _request(f"{parent.request_id}-ahead-{next(self._numbers)}", parent, tokens, params)
        child = self._children[request.request_id] = _Child(asyncio.get_running_loop().create_future())
        try:
            await self._engine.engine_core.add_request_async(request)
            return await child.answer
        except asyncio.CancelledError:
            await self._engine.engine_core.abort_requests_async([request.request_id])
            raise
        finally:
            self._children.pop(request.request_id, None)

    def _processed(self, outputs: list[EngineCoreOutput], *args: Any, **options: Any) -> Any:
        if not self._children:
            return self._process(outputs, *args, **options)
        for output in outputs:
            if (child := self._children.get(output.request_id)) is not None:
                _take(child, output)
        # Those of children go no further: the output processor knows nothing of them.
        return self._process([output for output in outputs if output.request_id not in self._children], *args, **options)

    def _propagated(self, error: Exception) -> None:
        for child in self._children.values():
            if not child.answer.done():
                child.answer.set_exception(error)
        self._propagate(error)


def _take(child: _Child, output: EngineCoreOutput) -> None:
    child.outputs.append(output)
    if child.answer.done() or output.finish_reason is None:
        return
    if output.finish_reason in (FinishReason.ABORT, FinishReason.ERROR):
        child.answer.set_exception(LookaheadFailed(f"the engine has ended a look-ahead: {output.finish_reason}"))
    else:
        child.answer.set_result(child.outputs)


def _request(request_id: str, parent: EngineCoreRequest, tokens: Sequence[int], params: SamplingParams) -> EngineCoreRequest:
    return EngineCoreRequest(
        request_id=request_id,
        prompt_token_ids=list(tokens),
        mm_features=None,
        sampling_params=params,
        pooling_params=None,
        arrival_time=parent.arrival_time,
        lora_request=None,
        cache_salt=parent.cache_salt,
        data_parallel_rank=None,
        priority=parent.priority,
        external_req_id=request_id,
    )
