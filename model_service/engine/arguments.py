"""From our settings to vLLM's command line arguments (vLLM 0.32: `entrypoints/launchers/cli_args.py`), and the operator's parsers that they
name (`entrypoints/launchers/api_server/entry.py`).

`python -m model_service.engine.arguments FLAG …` prints the engine arguments of a command line as JSON. It is a program of its own, since
`maskcast serve` must not import vLLM before it has chosen the environment that vLLM reads at its import.
"""

from __future__ import annotations

import json
import logging
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass, replace
from difflib import get_close_matches
from typing import Any

import torch
from transformers import PretrainedConfig
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.utils.import_utils import import_plugin

from model_service.errors import EngineSettingsError
from model_service.settings import EngineSettings, by_name

NO_DOMAIN = "none.invalid"
"""Images come in the request (`data:`): an engine that fetches what requests name reaches hosts that the clients do not. vLLM takes an
empty list for all domains; this name is nobody's (RFC 6761, section 6.4)."""

NATIVE_BFLOAT16 = ("avx512_bf16", "amx_bf16", "bf16")
"""What `torch.cpu.get_capabilities` calls the instructions of x86 and of Arm. A processor with none of them emulates bfloat16: 17
requests a second at 32 streams, and 50 in float32."""

FORCED_CALLS = "hermes"
"""The parser for models of an unknown format. Forced calls are JSON whatever the model, but vLLM takes none without a parser."""

LONGEST_THAT_FITS = -1
"""As vLLM writes it: the model's own context, cut to what the KV cache holds (`v1/core/kv_cache_utils.py`)."""

SCHEDULED_DRAFTS = "model_service.engine.workers.scheduled_drafts.ScheduledDrafts"
MOST_LOOKED_UP = 16
"""Drafts of a request in one forward."""

CPU_BLOCK = 32
"""Tokens of a block of the KV cache, the least that vLLM's attention takes on a CPU at full speed; vLLM's default there is 128. Prompts
share whole blocks only, and most system prompts and instructions are shorter than 128 tokens. No context is slower for it."""

_log = logging.getLogger(__name__)


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
    return _flags(_values(replace(settings, prompt_lookup=False)))


def parse_flags(words: Sequence[str]) -> dict[str, Any]:
    """What is said, and no defaults.

    Raises:
        EngineSettingsError: vLLM has no such argument, or refuses its value.
    """
    parser = make_arg_parser(_Parser())
    for action in parser._actions:
        action.default = SUPPRESS
    try:
        found = vars(parser.parse_args(list(words)))
    except (ValueError, TypeError) as error:
        raise EngineSettingsError(_with_a_guess(str(error), parser)) from error
    return {name: _plain(value) for name, value in found.items()}


class _Parser(FlexibleArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(message)


def _values(settings: EngineSettings) -> dict[str, Any]:
    named = {
        "model": settings.model,
        "served_model_name": [settings.served_name],
        "tensor_parallel_size": settings.tensor_parallel_size,
        "distributed_executor_backend": settings.executor,
        "dtype": _dtype(settings),
        "max_model_len": settings.max_model_len or LONGEST_THAT_FITS,
        "max_num_seqs": settings.max_num_seqs,
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "tool_call_parser": settings.tool_call_parser or FORCED_CALLS,
        "reasoning_parser": settings.reasoning_parser,
        "enable_auto_tool_choice": True,
        "enable_prompt_tokens_details": True,
        "structured_outputs_config": {"backend": "xgrammar"},
        "allowed_media_domains": [NO_DOMAIN],
        "otlp_traces_endpoint": settings.otlp_endpoint,
    }
    kv_cache = {"kv_cache_memory_bytes": int(settings.cpu_kv_cache_gib * 2**30), "block_size": CPU_BLOCK}
    on_cpu = {**kv_cache, "enforce_eager": settings.eager}
    if settings.prompt_lookup:
        named["speculative_config"] = {"method": "custom_class", "model": SCHEDULED_DRAFTS, "num_speculative_tokens": MOST_LOOKED_UP}
    if "speculative_config" in named or "speculative_config" in by_name(settings.engine_args):
        named["per_request_spec_decode_metrics"] = "summary"
    return {**named, **({} if settings.on_gpu else on_cpu), **settings.engine_args}


def _dtype(settings: EngineSettings) -> str:
    """vLLM's choice, unless that would be bfloat16 on a processor that emulates it."""
    if settings.dtype != "auto" or settings.on_gpu or any(torch.cpu.get_capabilities().get(name) for name in NATIVE_BFLOAT16):
        return settings.dtype
    if _is_quantized(settings.model):
        return settings.dtype
    _log.info("dtype auto is float32: this processor has no instructions for bfloat16, and would emulate it")
    return "float32"


def _is_quantized(model: str) -> bool:
    """Kernels of quantized weights take 16-bit activations only. What cannot be read is for vLLM to refuse."""
    try:
        return "quantization_config" in PretrainedConfig.get_config_dict(model)[0]
    except (OSError, ValueError):
        return False


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


def _with_a_guess(message: str, parser: FlexibleArgumentParser) -> str:
    begun, _, unknown = message.partition("unrecognized arguments: ")
    if not unknown:
        return message
    flag = unknown.split()[0].partition("=")[0]
    known = [option for action in parser._actions for option in action.option_strings]
    near = get_close_matches(flag, known, n=1)
    return f"{begun}vLLM has no argument {flag}{f'; did you mean {near[0]}?' if near else ''}"


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: each for name, each in asdict(value).items() if each is not None}
    return value


if __name__ == "__main__":
    try:
        print(json.dumps(parse_flags(sys.argv[1:])))
    except EngineSettingsError as error:
        sys.exit(str(error))
