"""What stands after `maskcast serve`: a model, and vLLM's own engine arguments, as a tree of settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deployments.config_model import names_folder
from deployments.errors import SettingsError

READER = "model_service.engine.arguments"
SETTINGS = {
    "model_tag": "model.path",
    "model": "model.path",
    "served_model_name": "model.served_name",
    "tensor_parallel_size": "model.tensor_parallel_size",
    "distributed_executor_backend": "model.executor",
    "dtype": "model.dtype",
    "max_model_len": "model.max_model_len",
    "max_num_seqs": "model.max_num_seqs",
    "gpu_memory_utilization": "model.gpu_memory_utilization",
    "tool_call_parser": "model.tool_call_parser",
    "reasoning_parser": "model.reasoning_parser",
    "host": "http.host",
    "api_key": "http.api_keys",
}
"""By vLLM's names. All others are `model.engine_args`."""
LONGEST = -1
"""vLLM's word for as many tokens as fit, which is what there is without a word."""
ITS_SERVERS = frozenset(
    "allow_credentials allowed_headers allowed_methods allowed_origins api_server_count config disable_access_log_for_endpoints "
    "disable_fastapi_docs disable_uvicorn_access_log enable_ssl_refresh grpc grpc_port h11_max_header_count h11_max_incomplete_event_size "
    "headless middleware port root_path ssl_ca_certs ssl_cert_reqs ssl_certfile ssl_ciphers ssl_keyfile uds uvicorn_log_level".split()
)
"""Arguments of vLLM's own HTTP server, which Maskcast does not run."""


def read_engine_flags(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Where more stands there than a model's name, vLLM's parser reads it, which takes some seconds.

    Raises:
        SettingsError: vLLM has no such argument, or refuses its value; or it is for vLLM's own HTTP server.
    """
    if not words:
        return {}
    return as_settings({"model_tag": words[0]} if len(words) == 1 and not words[0].startswith("-") else _read(words))


def as_settings(arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Raises SettingsError: one of them is for vLLM's own HTTP server."""
    tree: dict[str, dict[str, Any]] = {}
    for name, value in arguments.items():
        if name in ITS_SERVERS:
            raise SettingsError(f"--{name.replace('_', '-')} is for vLLM's own HTTP server: see http.… in docs/guide/settings.md")
        section, _, setting = SETTINGS.get(name, "model.engine_args").partition(".")
        if setting == "engine_args":
            tree.setdefault("model", {}).setdefault("engine_args", {})[name] = value
        elif not (setting == "max_model_len" and value == LONGEST):
            tree.setdefault(section, {})[setting] = _as_setting(setting, value)
    return tree


def _as_setting(setting: str, value: Any) -> Any:
    if setting == "path" and names_folder(value):
        return str(Path(value).expanduser().resolve())  # Ray's processes stand elsewhere
    return value[0] if setting == "served_name" and isinstance(value, list) else value


def _read(words: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", READER, *words]
    with TemporaryDirectory() as scratch:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": scratch}  # torch makes one when it is imported
        done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    if done.returncode or not lines:
        raise SettingsError(lines[-1] if lines else "vLLM's parser of arguments has ended without a word")
    found: dict[str, Any] = json.loads(lines[-1])
    return found
