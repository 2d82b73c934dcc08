"""The two servers, each alone on the machine: vLLM's own and ours, with the same engine arguments (vLLM 0.32)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from deployments.builders import engine_settings
from deployments.config import Settings, parse_settings
from deployments.fitting import fit
from deployments.local.environment import defaults, environment
from deployments.local.ports import free_port
from deployments.local.processes import ProcessTree, die_with_parent
from load_tests.errors import BenchFailed
from load_tests.front_door.figures import STOCK
from load_tests.front_door.processor_time import ProcessorTime
from load_tests.reporting.running_service import running_service
from model_service.engine.arguments import stock_flags

HOST = "127.0.0.1"
START_S = 240.0
LOOK_S = 0.25
PATIENCE_S = 10.0
LIKE_OURS = {"TORCHDYNAMO_DISABLE": "1"}
"""Eager is eager: otherwise a few helpers are compiled at the first request. Threads are bound as vLLM does by itself."""


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    processor_time: ProcessorTime


@contextmanager
def running(side: str, tree: dict[str, Any]) -> Iterator[Server]:
    """One of SIDES for a tree of our settings; it has ended, with all that it started, when the block has."""
    processor_time = ProcessorTime()
    if side == STOCK:
        with _stock(fit(parse_settings(tree), gpus=0).settings) as port:
            yield Server(port, processor_time)
    else:
        with running_service(tree) as url:
            yield Server(httpx.URL(url).port or 80, processor_time)


@contextmanager
def _stock(settings: Settings) -> Iterator[int]:
    port = free_port(HOST)
    flags = [*stock_flags(engine_settings(settings)), "--host", HOST, "--port", str(port)]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *flags, "--disable-uvicorn-access-log"]
    tree = ProcessTree()
    tree.watch()
    with tempfile.NamedTemporaryFile("w+", prefix="maskcast-stock-", suffix=".log") as log:
        try:
            with environment(defaults(settings, Path.home()), LIKE_OURS):
                process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=die_with_parent())  # noqa: PLW1509
            _await(port, process, Path(log.name))
            yield port
            process.terminate()
            process.wait(PATIENCE_S)
        finally:
            tree.end(PATIENCE_S)


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until it answers. Raises BenchFailed."""
    give_up = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < give_up:
        try:
            if httpx.get(f"http://{HOST}:{port}/health", timeout=5, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(LOOK_S)
    raise BenchFailed(f"vLLM's server does not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
