"""Processor time of a service, by the part that its processes play; titles are those of Ray 2.60 and vLLM 0.32."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import psutil

from deployments.names import APPLICATION, COMPILER, INGRESS, MODEL

ENGINE_CORE, WORKER, BROADCASTER, OTHER = "engine core", "worker", "mask broadcaster", "other"
ENGINE = (ENGINE_CORE, WORKER, BROADCASTER)
"""All else stands in front of it."""
_REPLICA = f"ray::ServeReplica:{APPLICATION}:"
_TITLES = (
    ("VLLM::EngineCore", ENGINE_CORE),
    ("VLLM::Worker", WORKER),
    (_REPLICA + INGRESS, "ingress"),
    (_REPLICA + MODEL, "replica"),
    (_REPLICA + COMPILER, "compiler"),
    ("ray::BroadcasterActor", BROADCASTER),
    ("ray::ServeController", "controller"),
    ("ray::ProxyActor", "proxy"),
    ("ray::HAProxyManager", "proxy"),
)
_NAMES = {"haproxy": "proxy"}
_MODULES = {"vllm.entrypoints.openai.api_server": "api server"}


def part_of(name: str, command: list[str]) -> str | None:
    """What a process with that name and command line is; None: what its parent is."""
    title = " ".join(command)
    for beginning, part in _TITLES:
        if title.startswith(beginning):
            return part
    return _NAMES.get(name) or next((part for module, part in _MODULES.items() if module in command), None)


class ProcessorTime:
    """Of all processes below this one that were not there when it was made."""

    def __init__(self) -> None:
        self._earlier = {child.pid for child in psutil.Process().children(recursive=True)}

    def read(self) -> dict[str, float]:
        """Seconds so far, by part; of processes that have ended nothing is known."""
        parts: dict[int, str] = {}
        seconds: dict[str, float] = {}
        for process in psutil.Process().children(recursive=True):
            if process.pid in self._earlier:
                continue
            with suppress(psutil.Error):
                times = process.cpu_times()
                part = part_of(process.name(), process.cmdline()) or parts.get(process.ppid(), OTHER)
                parts[process.pid] = part
                seconds[part] = seconds.get(part, 0.0) + times.user + times.system
        return seconds


def machine_s() -> float:
    """Processor seconds that were used on the whole machine so far, the kernel's among them."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def between(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What each part has used meanwhile; a part that has lost a process, nothing rather than less."""
    return {part: max(0.0, seconds - before.get(part, 0.0)) for part, seconds in after.items()}


def in_front(used: Mapping[str, float]) -> float:
    """Of the engine."""
    return sum(seconds for part, seconds in used.items() if part not in ENGINE)
