"""The engines of the comparison (vLLM 0.32): alike in all but Maskcast's plugs, each with a count of its real forwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm.config import VllmConfig
from vllm.v1.engine.async_llm import AsyncLLM

from load_tests.errors import BenchFailed
from model_service.engine.arguments import parse_arguments
from model_service.engine.configuration import plug, stock_config
from model_service.engine.keyed import KeyedEngine
from model_service.engine.workers.executors import executor_class
from model_service.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Forwards:
    """`steps` forwards of the whole batch; `seats`: over all of them, the requests that took part."""

    steps: int = 0
    seats: int = 0

    def since(self, earlier: Forwards) -> Forwards:
        return Forwards(self.steps - earlier.steps, self.seats - earlier.seats)


class ForwardCounter:
    """One of vLLM's stat loggers (`v1/metrics/loggers.py`), and the factory of itself: reads what the engine core says of each forward
    that it has run, so that an engine needs `enable_logging_iteration_details`."""

    def __init__(self) -> None:
        self.total = Forwards()

    def __call__(self, config: Any, engine_index: int = 0) -> ForwardCounter:
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0) -> None:
        details = scheduler_stats.iteration_details if scheduler_stats is not None else None
        if details is not None and not details.is_dummy:
            seats = details.num_ctx_requests + details.num_generation_requests
            self.total = Forwards(self.total.steps + 1, self.total.seats + seats)

    def log_engine_initialized(self) -> None:
        """Nothing is logged, here and below."""

    def log(self) -> None: ...

    def record_sleep_state(self, is_awake: int, level: int) -> None: ...


@dataclass(frozen=True, slots=True)
class CountedEngine:
    engine: AsyncLLM
    counter: ForwardCounter

    async def forget(self) -> None:
        """Empty the prefix cache, so that no arm finds the prompts that it has had before."""
        await self.engine.reset_prefix_cache()

    def close(self) -> None:
        self.engine.shutdown()


def maskcast_engine(settings: EngineSettings, channel: str) -> CountedEngine:
    """The engine of a model replica, without its HTTP front; blocks until it is loaded."""
    return _started(KeyedEngine, plug(stock_config(parse_arguments(settings)), settings, channel))


def stock_engine(settings: EngineSettings) -> CountedEngine:
    """vLLM's own front end, scheduler and worker, with its xgrammar backend and otherwise the same configuration."""
    return _started(AsyncLLM, stock_config(parse_arguments(settings)))


def check_alike(ours: VllmConfig, stock: VllmConfig) -> None:
    """But for whose scheduler it is, and whether steps overlap, which jumps may decide. Raises BenchFailed."""
    theirs, apart = vars(stock.scheduler_config), ("scheduler_cls", "async_scheduling")
    differing = {name: (value, theirs[name]) for name, value in vars(ours.scheduler_config).items() if value != theirs[name]}
    if differing.keys() - set(apart):
        raise BenchFailed(f"the engines schedule by other settings: {differing}")


def _started(kind: type[AsyncLLM], config: VllmConfig) -> CountedEngine:
    """The executor is ours for both, so that they differ in nothing but the grammar's way."""
    counter = ForwardCounter()
    return CountedEngine(kind(config, executor_class(config), log_stats=False, stat_loggers=[counter], log_requests=False), counter)
