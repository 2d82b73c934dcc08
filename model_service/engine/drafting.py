"""The engine beside a replica's own that drafts for it (vLLM 0.32: `v1/engine/async_llm.py`, `v1/attention/backends/cpu_attn.py`)."""

from __future__ import annotations

import asyncio

from vllm.config import VllmConfig

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.arguments import parse_arguments
from model_service.engine.configuration import USAGE, check_logits, plug, stock_config
from model_service.engine.keyed import KeyedEngine
from model_service.engine.workers.executors import executor_class
from model_service.errors import EngineSettingsError
from model_service.settings import EngineSettings


async def start_draft(settings: EngineSettings, of: EngineSettings, channel: str) -> KeyedEngine:
    """`settings`: of the draft's engine, `of`: of the one that it drafts for.

    Raises:
        EngineSettingsError: it cannot draft for that one, or cannot run.
    """
    engine = await asyncio.to_thread(_started, settings, of, channel)
    try:
        await check_logits(engine)
    except EngineSettingsError as error:
        engine.shutdown()
        raise EngineSettingsError(f"the draft model {settings.model}: {error}") from error
    return engine


def _started(settings: EngineSettings, of: EngineSettings, channel: str) -> KeyedEngine:
    name = f"the draft model {settings.model}"
    try:
        draft, target = GrammarTokenizer.load(settings.tokenizer), GrammarTokenizer.load(of.tokenizer)
    except (OSError, ValueError) as error:
        raise EngineSettingsError(f"{name} has no tokenizer that can be read: {error}") from error
    if draft.fingerprint != target.fingerprint:
        raise EngineSettingsError(f"{name} has other tokens than the model {of.model}, whose it would have to draft")
    try:
        config = stock_config(parse_arguments(settings))
        _check_heads(config, name)
        config = plug(config, settings, channel)
    except EngineSettingsError as error:
        raise EngineSettingsError(str(error) if str(error).startswith(name) else f"{name}: {error}") from error
    try:
        return KeyedEngine(config, executor_class(config), log_stats=False, usage_context=USAGE, log_requests=False)
    except RuntimeError as error:
        raise EngineSettingsError(f"{name} cannot be run: {error}") from error


def _check_heads(config: VllmConfig, name: str) -> None:
    """On a CPU; vLLM itself chooses among kernels on a GPU. Its own refusal comes out of another process, and says less."""
    if config.device_config.device_type != "cpu":
        return
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    size = config.model_config.get_head_size()
    if not CPUAttentionBackend.supports_head_size(size):
        sizes = ", ".join(map(str, CPUAttentionBackend.get_supported_head_sizes()))
        raise EngineSettingsError(f"{name} has heads of {size} numbers, where vLLM's attention on a CPU takes {sizes}")
