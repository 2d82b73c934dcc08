"""From our settings to vLLM's command line arguments (vLLM 0.32: `entrypoints/launchers/cli_args.py`)."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

from model_service.engine.core_options import BroadcasterOptions, CoreOptions
from model_service.errors import EngineSettingsError
from model_service.settings import EngineSettings
from model_service.shared_memory import MemoryAddress

NO_DOMAIN = "none.invalid"
"""Images come in the request (`data:`): an engine that fetches what requests name reaches hosts that the clients do not. vLLM takes an
empty list for all domains; this name is nobody's (RFC 6761, section 6.4)."""


# By name: the worker of a CPU takes streams, events and pinned memory out of torch for whatever process imports it.
SCHEDULER = "model_service.engine.core.scheduler.MaskcastScheduler"
ASYNC_SCHEDULER = "model_service.engine.core.scheduler.MaskcastAsyncScheduler"
CPU_WORKER = "model_service.engine.workers.cpu_worker.MaskcastCPUWorker"
GPU_WORKER = "model_service.engine.workers.worker.MaskcastWorker"


def parse_arguments(settings: EngineSettings, channel: str, figures: MemoryAddress | None = None) -> Namespace:
    """vLLM's own argument object, so that its checks and defaults apply. `figures`: the page that the engine core counts on.

    Raises:
        EngineSettingsError: vLLM refuses an argument.
    """
    try:
        arguments: Namespace = make_arg_parser(_Parser()).parse_args(_flags(_values(settings, channel, figures)))
    except (ValueError, TypeError) as error:
        raise EngineSettingsError(f"engine arguments: {error}") from error
    return arguments


def stock_flags(settings: EngineSettings) -> list[str]:
    """The command line of vLLM's own server that makes the same engine but for what Maskcast plugs into it."""
    return _flags(_shared(settings))


class _Parser(FlexibleArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(message)


def _shared(settings: EngineSettings) -> dict[str, Any]:
    named = {
        "model": settings.model,
        "served_model_name": [settings.served_name],
        "tensor_parallel_size": settings.tensor_parallel_size,
        "distributed_executor_backend": settings.executor,
        "dtype": settings.dtype,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs,
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "tool_call_parser": settings.tool_call_parser,
        "enable_auto_tool_choice": True,
        "enable_prompt_tokens_details": True,
        "structured_outputs_config": {"backend": "xgrammar"},
        "allowed_media_domains": [NO_DOMAIN],
    }
    on_cpu = {"kv_cache_memory_bytes": int(settings.cpu_kv_cache_gib * 2**30), "enforce_eager": settings.eager}
    return {**named, **({} if settings.on_gpu else on_cpu), **settings.engine_args}


def _values(settings: EngineSettings, channel: str, figures: MemoryAddress | None) -> dict[str, Any]:
    scheduler = SCHEDULER if settings.jumps or not settings.on_gpu else ASYNC_SCHEDULER
    options = _options(settings, channel, figures)
    ours: dict[str, Any] = {"scheduler_cls": scheduler, "additional_config": options.additional_config()}
    if settings.jumps or settings.mask_socket is not None or not settings.on_gpu:
        ours["worker_cls"] = GPU_WORKER if settings.on_gpu else CPU_WORKER
    if settings.jumps:
        ours["async_scheduling"] = False
    return {**_shared(settings), **ours}


def _options(settings: EngineSettings, channel: str, figures: MemoryAddress | None) -> CoreOptions:
    socket, deadline_s = settings.mask_socket, settings.mask_deadline_ms / 1000
    broadcaster = BroadcasterOptions(socket, deadline_s) if socket is not None else None
    return CoreOptions(channel, figures, settings.count_mask_rows, settings.jumps, broadcaster)


def _flags(values: dict[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None:
            continue
        if isinstance(value, bool):
            flags.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, list):
            flags += [flag, *map(str, value)]
        else:
            flags += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    return flags
