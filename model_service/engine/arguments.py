"""From our settings to vLLM's command line arguments (vLLM 0.32: `entrypoints/launchers/cli_args.py`)."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.core.sched.scheduler import Scheduler

from model_service.engine.broadcast import BroadcastAsyncScheduler, BroadcastJumpForwardScheduler, BroadcastScheduler
from model_service.engine.jumping import JumpForwardScheduler
from model_service.engine.scheduler import BROADCASTER, CHANNEL, MaskcastAsyncScheduler, MaskcastScheduler
from model_service.engine.watched import COUNT_ROWS, FIGURES
from model_service.engine.worker import MaskcastCPUWorker, MaskcastWorker
from model_service.errors import EngineSettingsError
from model_service.settings import EngineSettings


def parse_arguments(settings: EngineSettings, channel: str, figures: str = "") -> Namespace:
    """vLLM's own argument object, so that its checks and defaults apply. `figures`: path of the page that the engine core counts on.

    Raises:
        EngineSettingsError: vLLM refuses an argument.
    """
    try:
        arguments: Namespace = make_arg_parser(_Parser()).parse_args(_flags(_values(settings, channel, figures)))
    except (ValueError, TypeError) as error:
        raise EngineSettingsError(f"engine arguments: {error}") from error
    return arguments


class _Parser(FlexibleArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(message)


def _values(settings: EngineSettings, channel: str, figures: str) -> dict[str, Any]:
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
    }
    on_cpu = {"kv_cache_memory_bytes": int(settings.cpu_kv_cache_gib * 2**30), "enforce_eager": settings.eager}
    additional = {**_additional(settings, channel), FIGURES: figures, COUNT_ROWS: settings.count_mask_rows}
    ours: dict[str, Any] = {"scheduler_cls": _path(_scheduler(settings)), "additional_config": additional}
    if settings.jumps or settings.mask_socket is not None or not settings.on_gpu:
        ours["worker_cls"] = _path(MaskcastWorker if settings.on_gpu else MaskcastCPUWorker)
    if settings.jumps:
        ours["async_scheduling"] = False
    return {**named, **({} if settings.on_gpu else on_cpu), **settings.engine_args, **ours}


def _additional(settings: EngineSettings, channel: str) -> dict[str, Any]:
    if settings.mask_socket is None:
        return {CHANNEL: channel}
    return {CHANNEL: channel, BROADCASTER: {"socket": settings.mask_socket, "deadline_s": settings.mask_deadline_ms / 1000}}


def _scheduler(settings: EngineSettings) -> type[Scheduler]:
    broadcast = settings.mask_socket is not None
    if settings.jumps:
        return BroadcastJumpForwardScheduler if broadcast else JumpForwardScheduler
    if settings.on_gpu:
        return BroadcastAsyncScheduler if broadcast else MaskcastAsyncScheduler
    return BroadcastScheduler if broadcast else MaskcastScheduler


def _path(of: type) -> str:
    return f"{of.__module__}.{of.__qualname__}"


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
