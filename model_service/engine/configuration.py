"""An engine's configuration (vLLM 0.32: `config/vllm.py`, `entrypoints/launchers/api_server/entry.py`), and what Maskcast plugs into it.

What is plugged in is chosen by what vLLM has made of all arguments: these alone do not tell whether there are drafts, which model runner
there is, or whether scheduling is asynchronous.
"""

from __future__ import annotations

import logging
from argparse import Namespace
from dataclasses import replace
from importlib.metadata import entry_points

from pydantic import ValidationError
from vllm.config import VllmConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.executor import Executor
from vllm.v1.sample.logits_processor import LOGITSPROCS_GROUP

from model_service.engine.arguments import parse_arguments
from model_service.engine.core_options import BroadcasterOptions, CoreOptions, carry, core_options
from model_service.engine.verification import MOST_DRAFTS
from model_service.engine.workers.vocabulary_width import check_width
from model_service.errors import EngineSettingsError
from model_service.messages import EngineFacts
from model_service.settings import EngineSettings, by_name
from model_service.shared_memory import MemoryAddress

USAGE = UsageContext.OPENAI_API_SERVER
"""Whom vLLM takes us for: its defaults for tokens and requests of a step depend on it, and these are the ones of `vllm serve`."""

# By name: the worker of a CPU takes streams, events and pinned memory out of torch for whatever process imports it.
SCHEDULER = "model_service.engine.core.scheduler.MaskcastScheduler"
LOOKAHEAD_SCHEDULER = "model_service.engine.core.lookahead.scheduler.LookaheadScheduler"
ASYNC_SCHEDULER = "model_service.engine.core.async_scheduler.MaskcastAsyncScheduler"
CPU_WORKER = "model_service.engine.workers.cpu_worker.MaskcastCPUWorker"
GPU_WORKER = "model_service.engine.workers.worker.MaskcastWorker"
OUR_WORKERS = frozenset({CPU_WORKER, GPU_WORKER})
_JUMPS_BESIDE = frozenset({"custom_class", "draft_model", "eagle", "eagle3", "mtp", "ngram", "suffix"})
"""Methods of drafts that go on behind forced tokens: they are made anew after each step, of its tokens or of what it has computed."""
_OURS = {"vllm.v1.worker.cpu_worker.CPUWorker": CPU_WORKER, "vllm.v1.worker.gpu_worker.Worker": GPU_WORKER}

_log = logging.getLogger(__name__)


def stock_config(arguments: Namespace) -> VllmConfig:
    """What vLLM's own server makes of the same arguments.

    Raises:
        EngineSettingsError: vLLM refuses them.
    """
    try:
        return AsyncEngineArgs.from_cli_args(arguments).create_engine_config(USAGE)
    except (ValueError, ValidationError, RuntimeError, KeyError) as error:  # the last two: a reasoning parser whose marks are no tokens
        raise EngineSettingsError(f"engine arguments: {error}") from error


def with_prompt_lookup(settings: EngineSettings) -> EngineSettings:
    """The same settings, with `prompt_lookup` decided: "auto" is on a CPU, where steps do not overlap anyway, if the engine can."""
    if settings.prompt_lookup != "auto":
        return settings
    chosen = replace(settings, prompt_lookup=True)
    return chosen if _can_look_up(chosen) else replace(settings, prompt_lookup=False)


def _can_look_up(settings: EngineSettings) -> bool:
    own = {"speculative_config", "async_scheduling"} & by_name(settings.engine_args).keys()
    if settings.on_gpu or settings.lookahead or settings.jump_forward not in ("auto", "sync") or own:
        return False
    try:
        _check_prompt_lookup(stock_config(parse_arguments(settings)), settings)
    except EngineSettingsError as error:  # if other settings are wrong, they are so without it
        _log.info("nothing is drafted out of the prompt: %s", error)
        return False
    return True


def plug(config: VllmConfig, settings: EngineSettings, channel: str, figures: MemoryAddress | None = None) -> VllmConfig:
    """The same configuration, with what is ours in it. `channel`: the replica's artifact channel; `figures`: the page that the engine core
    counts on.

    Raises:
        EngineSettingsError: something else is plugged in there, or what the settings ask for does not go with the configuration.
    """
    _check(config, settings)
    if settings.jump_forward == "async":
        _check_asynchronous(config, settings)
    why_stepped = (_why_stepped(config) or _why_asynchronous(config, settings)) if settings.jump_forward else None
    if why_stepped is not None:
        _log.warning("nothing is jumped over: %s", why_stepped)
    jumps = settings.jump_forward is not False and why_stepped is None
    if settings.lookahead or (jumps and config.speculative_config is not None):
        if config.scheduler_config.async_scheduling:
            _log.info("steps are synchronous, so that forced tokens take the place of drafts (`jump_forward: false`: they overlap)")
        config.scheduler_config.async_scheduling = False
    elif jumps and settings.jump_forward != "auto":
        config.scheduler_config.async_scheduling = settings.jump_forward == "async"
    config.scheduler_config.scheduler_cls = _scheduler(config, settings)
    ours = _our_worker(config)
    if ours is not None:
        config.parallel_config.worker_cls = ours
    carry(config, _options(settings, jumps, channel, figures))
    return config


def engine_facts(config: VllmConfig) -> EngineFacts:
    """Of an engine that runs with this configuration."""
    model, scheduling = config.model_config, "async" if config.scheduler_config.async_scheduling else "sync"
    return EngineFacts(
        model.max_model_len, str(model.dtype).removeprefix("torch."), scheduling if core_options(config).jump_forward else ""
    )


async def check_logits(engine: AsyncLLM) -> None:
    """Raises EngineSettingsError: what the model that is loaded makes, as its workers have tried it, is not of the vocabulary. Workers that
    are not ours do not tell."""
    config = engine.vllm_config
    if config.parallel_config.worker_cls in OUR_WORKERS:
        check_width(await engine.collective_rpc("logits_width"), config.model_config.get_vocab_size())


def _check(config: VllmConfig, settings: EngineSettings) -> None:
    scheduler, parallel = config.scheduler_config.scheduler_cls, config.parallel_config
    if scheduler is not None:
        raise EngineSettingsError(f"this engine needs the scheduler {scheduler}, in whose place Maskcast's would stand")
    if parallel.data_parallel_size > 1:
        raise EngineSettingsError("a replica is one engine: in place of data_parallel_size, set `num_replicas`")
    if parallel.world_size != settings.workers:
        raise EngineSettingsError(f"vLLM makes {parallel.world_size} workers of these arguments, where {settings.workers} have been placed")
    if settings.lookahead:
        _check_lookahead(config, settings)
    if settings.prompt_lookup:
        _check_prompt_lookup(config, settings)
    if settings.mask_socket is not None:
        _check_masks(config)


def _check_masks(config: VllmConfig) -> None:
    reason = None
    if _our_worker(config) is None:
        reason = f"the worker {config.parallel_config.worker_cls} takes"
    elif config.use_v2_model_runner and config.speculative_config is not None and config.speculative_config.enable_adaptive_verification:
        # Only the device knows then whose a row of logits is.
        reason = "drafts with `enable_adaptive_verification` take"
    if reason is not None:
        raise EngineSettingsError(f"{reason} no masks from a broadcaster: set `masks: in_process`")


def _scheduler(config: VllmConfig, settings: EngineSettings) -> str:
    if settings.lookahead:
        return LOOKAHEAD_SCHEDULER
    return ASYNC_SCHEDULER if config.scheduler_config.async_scheduling else SCHEDULER


def _check_lookahead(config: VllmConfig, settings: EngineSettings) -> None:
    scheduling = config.scheduler_config
    steps = [scheduling.max_num_batched_tokens, scheduling.long_prefill_token_threshold or scheduling.max_num_batched_tokens]
    reasons = {
        "`prompt_lookup`": settings.prompt_lookup is True,
        "drafts of `speculative_config`": config.speculative_config is not None,
        "a pipeline": config.parallel_config.pipeline_parallel_size > 1,
        "vLLM's second model runner (VLLM_USE_V2_MODEL_RUNNER)": bool(config.use_v2_model_runner),
        f"the worker {config.parallel_config.worker_cls}": _our_worker(config) is None,
        "masks from a broadcaster": settings.mask_socket is not None,
        "a reasoning parser": bool(config.structured_outputs_config.reasoning_parser),
        "adapters": config.lora_config is not None,
        "a KV cache that is fetched from elsewhere": config.kv_transfer_config is not None,
        "a model that keeps a state beside its KV cache": bool(config.model_config.has_inner_state),
        f"steps of at most {min(steps)} tokens": min(steps) <= MOST_DRAFTS,
    }
    for reason, holds in reasons.items():
        if holds:
            raise EngineSettingsError(f"look-ahead does not go with {reason}")


def _check_prompt_lookup(config: VllmConfig, settings: EngineSettings) -> None:
    method = config.speculative_config.method if config.speculative_config is not None else None
    reasons = {
        "`jump_forward: false`": settings.jump_forward is False,
        f"drafts of the method {method!r}": method != "custom_class",
        "logits processors of your own": bool(config.model_config.logits_processors or entry_points(group=LOGITSPROCS_GROUP)),
        "vLLM's second model runner, which has no such drafts (VLLM_USE_V2_MODEL_RUNNER)": bool(config.use_v2_model_runner),
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None) or _why_stepped(config)
    if reason is not None:
        raise EngineSettingsError(f"`prompt_lookup` does not go with this engine: {reason}")


def _why_stepped(config: VllmConfig) -> str | None:
    """Why forced tokens cannot be jumped over; None: they can."""
    if config.speculative_config is not None and (reason := _why_stepped_beside(config.speculative_config.method, config)) is not None:
        return reason
    if config.parallel_config.pipeline_parallel_size > 1:
        return "the stages of a pipeline hear of tokens in another way"
    if config.use_v2_model_runner and config.model_config.uses_mrope:
        return "vLLM's second model runner knows positions of several parts in a prompt only (VLLM_USE_V2_MODEL_RUNNER=0: the first one)"
    if _our_worker(config) is None:
        return f"the worker {config.parallel_config.worker_cls} cannot be told of forced tokens"
    return None


def _why_stepped_beside(method: str, config: VllmConfig) -> str | None:
    """Why forced tokens cannot be jumped over beside drafts that are made by this method of vLLM's; None: they can."""
    if method not in _JUMPS_BESIDE:
        return f"nothing has shown that drafts of the method {method!r} go on behind forced tokens"
    models = config.model_config, config.speculative_config.draft_model_config
    if any(model is not None and model.has_inner_state for model in models):
        return "nothing has shown that drafts go on behind forced tokens where a model keeps a state beside its KV cache"
    if config.use_v2_model_runner and config.speculative_config.use_multi_module_mtp():
        return "modules of an MTP keep what dropped drafts have left in their KV cache (VLLM_USE_V2_MODEL_RUNNER=0: the first model runner)"
    return None


def _why_asynchronous(config: VllmConfig, settings: EngineSettings) -> str | None:
    if config.speculative_config is not None and by_name(settings.engine_args).get("async_scheduling"):
        return "beside drafts, forced tokens need synchronous steps, and `engine_args` ask for `async_scheduling`"
    return None


def _check_asynchronous(config: VllmConfig, settings: EngineSettings) -> None:
    reasons = {
        "`engine_args: {async_scheduling: false}`": by_name(settings.engine_args).get("async_scheduling") is False,
        "look-ahead, whose steps are synchronous": settings.lookahead,
        "`prompt_lookup`, whose steps are synchronous": settings.prompt_lookup is True,
        "drafts of `speculative_config`": config.speculative_config is not None and not settings.prompt_lookup,
        f"the executor {config.parallel_config.distributed_executor_backend}": not Executor.get_class(config).supports_async_scheduling(),
    }
    for reason, holds in reasons.items():
        if holds:
            raise EngineSettingsError(f"`jump_forward: async` does not go with {reason}: set `jump_forward: auto`")


def _our_worker(config: VllmConfig) -> str | None:
    """What stands in for the configuration's worker; None: nothing can."""
    return _OURS.get(config.parallel_config.worker_cls)


def _options(settings: EngineSettings, jumps: bool, channel: str, figures: MemoryAddress | None) -> CoreOptions:
    socket, deadline_s = settings.mask_socket, settings.mask_deadline_ms / 1000
    broadcaster = BroadcasterOptions(socket, deadline_s) if socket is not None else None
    grammar_bytes = settings.grammar_memory_mib << 20
    return CoreOptions(
        channel, figures, settings.count_mask_rows, jumps, settings.prompt_lookup is True, settings.lookahead, broadcaster, grammar_bytes
    )
