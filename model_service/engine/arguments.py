"""From our settings to vLLM's command line arguments (vLLM 0.32: `entrypoints/launchers/cli_args.py`), and the operator's parsers that they
name (`entrypoints/launchers/api_server/entry.py`)."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.utils.import_utils import import_plugin

from model_service.errors import EngineSettingsError
from model_service.settings import EngineSettings

NO_DOMAIN = "none.invalid"
"""Images come in the request (`data:`): an engine that fetches what requests name reaches hosts that the clients do not. vLLM takes an
empty list for all domains; this name is nobody's (RFC 6761, section 6.4)."""

SMALL_BLOCK = 32
"""Tokens, the least that vLLM's attention takes on a CPU; its default is 128 there. The text that a look-ahead goes on from is computed
anew from its last whole block on."""


def parse_arguments(settings: EngineSettings) -> Namespace:
    """vLLM's own argument object, so that its checks and defaults apply.

    Raises:
        EngineSettingsError: vLLM refuses an argument.
    """
    try:
        arguments: Namespace = make_arg_parser(_Parser()).parse_args(_flags(_values(settings)))
    except (ValueError, TypeError) as error:
        raise EngineSettingsError(f"engine arguments: {error}") from error
    return arguments


def load_parsers(arguments: Namespace) -> None:
    """Reads the operator's own parsers of tools and reasoning, which vLLM's server does before it makes an engine.

    Raises:
        EngineSettingsError: one of them cannot be read; the log says why.
    """
    for name in ("tool_parser_plugin", "reasoning_parser_plugin"):
        plugin = getattr(arguments, name)
        if plugin and import_plugin(plugin) is None:
            raise EngineSettingsError(f"engine arguments: {name} {plugin!r} is no module that can be imported")


def stock_flags(settings: EngineSettings) -> list[str]:
    """The command line of vLLM's own server that makes the same engine but for what Maskcast plugs into it (`engine/configuration.py`)."""
    return _flags(_values(settings))


class _Parser(FlexibleArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(message)


def _values(settings: EngineSettings) -> dict[str, Any]:
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
        "otlp_traces_endpoint": settings.otlp_endpoint,
    }
    on_cpu = {"kv_cache_memory_bytes": int(settings.cpu_kv_cache_gib * 2**30), "enforce_eager": settings.eager}
    if settings.lookahead:
        on_cpu["block_size"] = SMALL_BLOCK
    return {**named, **({} if settings.on_gpu else on_cpu), **settings.engine_args}


def _flags(values: dict[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None:
            continue
        if isinstance(value, bool):
            flags.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, list):
            flags += [flag, *map(_word, value)]
        else:
            flags += [flag, _word(value)]
    return flags


def _word(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
