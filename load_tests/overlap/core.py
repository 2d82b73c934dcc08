"""An engine core in this process, and the processor time of its steps by pieces (vLLM 0.32: `v1/engine/core.py`,
`v1/worker/gpu_model_runner.py`)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from vllm.sampling_params import SamplingParams
from vllm.v1.engine.core import EngineCore
from vllm.v1.request import Request

from load_tests.overlap.figures import PIECES, Step
from model_service.engine.arguments import parse_arguments
from model_service.engine.configuration import plug, stock_config
from model_service.engine.key_constraint import key_constraint
from model_service.engine.workers.executors import executor_class
from model_service.settings import EngineSettings

SCHEDULE, INPUTS, BOOKKEEPING, OUTPUT = PIECES


class TimedCore:
    """Steps through requests, and keeps what each step took."""

    def __init__(self, settings: EngineSettings, channel: str) -> None:
        config = plug(stock_config(parse_arguments(settings)), settings, channel)
        self._core: Any = EngineCore(config, executor_class(config), log_stats=False)
        self._took: Counter[str] = Counter()
        self._requests = 0
        self._known = 0
        scheduler, runner = self._core.scheduler, self._core.model_executor.driver_worker.worker.model_runner
        self._time(scheduler, "schedule", SCHEDULE)
        self._time(scheduler, "update_from_output", OUTPUT)
        self._time(runner, "_bookkeeping_sync", BOOKKEEPING)
        self._time_inputs(runner)

    def steps(self, prompts: Sequence[list[int]], keys: Sequence[str], max_tokens: int) -> list[Step]:
        """Those of all requests at once, until they have ended; grammars are loaded, and no prompt is in the cache, before the first."""
        self._core.reset_prefix_cache()
        for prompt, key in zip(prompts, keys, strict=True):
            self._add(prompt, key, max_tokens)
        found = []
        while self._core.scheduler.has_requests():
            self._took.clear()
            self._core.step()
            found.append(Step(self._requests, {piece: self._took[piece] / 1000 for piece in PIECES}))
        return found

    def close(self) -> None:
        self._core.shutdown()

    def _add(self, prompt: list[int], key: str, max_tokens: int) -> None:
        manager = self._core.structured_output_manager
        params = SamplingParams(temperature=0, max_tokens=max_tokens, structured_outputs=key_constraint(key))
        params.update_from_generation_config({}, manager.tokenizer.eos_token_id)
        self._known += 1
        request = Request(str(self._known), prompt, params, None, block_hasher=self._core.request_block_hasher)
        manager.grammar_init(request)
        request.structured_output_request.grammar  # noqa: B018  # waits for it
        self._core.scheduler.add_request(request)

    def _time(self, owner: Any, method: str, piece: str) -> None:
        """In this thread's time: whatever else the machine does, and the threads of the forward, are not in it."""
        inner: Callable[..., Any] = getattr(owner, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.thread_time_ns()
            try:
                result = inner(*arguments, **options)
            finally:
                self._took[piece] += time.thread_time_ns() - began
            if piece == SCHEDULE:
                self._requests = len(result.num_scheduled_tokens)
            return result

        setattr(owner, method, timed)

    def _time_inputs(self, runner: Any) -> None:
        """From the beginning of a step in the worker to that of its forward."""
        execute, forward = runner.execute_model, runner._model_forward
        began = 0

        def executing(*arguments: Any, **options: Any) -> Any:
            nonlocal began
            began = time.thread_time_ns()
            return execute(*arguments, **options)

        def computing(*arguments: Any, **options: Any) -> Any:
            self._took[INPUTS] += time.thread_time_ns() - began
            return forward(*arguments, **options)

        runner.execute_model, runner._model_forward = executing, computing
