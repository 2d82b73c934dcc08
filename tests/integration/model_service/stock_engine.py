"""vLLM's own engine (0.32), with which Maskcast's is compared."""

from __future__ import annotations

from vllm.v1.engine.async_llm import AsyncLLM

from model_service.engine.arguments import parse_arguments
from model_service.engine.configuration import stock_config
from model_service.engine.workers.executors import executor_class
from model_service.settings import EngineSettings


def stock_engine(settings: EngineSettings) -> AsyncLLM:
    """Its front end, scheduler and worker with its xgrammar backend, and otherwise Maskcast's configuration; blocks until it is loaded. The
    executor is Maskcast's, so that they differ in nothing but the grammar's way."""
    config = stock_config(parse_arguments(settings))
    return AsyncLLM(config, executor_class(config), log_stats=False, log_requests=False)
