"""What must be true of this machine before the service starts on it; each fault is one sentence that says what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from deployments.access.key_file import read_keys
from deployments.builders import path_of
from deployments.config import Settings
from deployments.config_model import EMBEDDED, names_folder
from deployments.errors import StartError
from deployments.grammars.registration import settings_grammars
from deployments.local.ports import port_fault

GIB = 2**30
# Measured on a CPU, with a margin (the defaults take 4.4 GiB in all): Ray's and Serve's own processes, the proxy and the ingress;
# a compile replica with its child; a replica's own process with its engine core; a worker without its KV cache.
BASE_GIB = 1.4
COMPILE_REPLICA_GIB = 0.7
MODEL_REPLICA_GIB = 1.1
WORKER_GIB = 1.1
# Ray's object store, and what a replica and each of its workers exchange.
OBJECT_STORE_MIB = 256
REPLICA_SHARED_MIB = 64
WEIGHT_FILES = ("*.safetensors", "*.bin")


@dataclass(frozen=True)
class Machine:
    """Facts about this machine. `gpus` are the devices that the kernel shows, whether or not a driver works."""

    available_gib: float
    shared_mib: float
    gpus: int
    compiler: str | None
    redis_server: str | None


def preflight(settings: Settings, *, own_redis: bool) -> None:
    """`own_redis`: it is to start a Redis.

    Raises:
        StartError: the first reason why the service cannot start here.
        SettingsError: a grammar in the settings is enforced by no backend, or the key file is wrong.
    """
    settings_grammars(settings)
    if settings.http.api_keys_file:
        read_keys(Path(settings.http.api_keys_file))
    for fault in (*machine_faults(settings, inspect_machine(), own_redis=own_redis), port_fault(settings.http.host, settings.http.port)):
        if fault:
            raise StartError(fault)


def machine_faults(settings: Settings, machine: Machine, *, own_redis: bool) -> Iterator[str]:
    model = settings.model
    if not machine.compiler:
        yield "no C++ compiler found, which torch needs at run time: install g++ (on Debian or Ubuntu: apt install g++)"
    if own_redis and not machine.redis_server:
        yield "redis-server was not found: install it (on Debian or Ubuntu: apt install redis-server) or set redis.url to a Redis that runs"
    if names_folder(model.path) and not Path(model.path).is_dir():
        yield f"model.path: there is no folder {model.path}"
    gpus = model.num_replicas * model.workers * model.gpus
    if gpus > machine.gpus:
        yield f"the settings ask for {gpus:g} GPUs and this machine shows {machine.gpus}: lower model.gpus_per_worker or num_replicas"
    needed = needed_gib(settings, weights_gib(model.path))
    if machine.available_gib < needed:
        yield (
            f"too little memory: the settings need about {needed:.1f} GiB and {machine.available_gib:.1f} GiB are available; "
            "close other programs, or lower model.num_replicas, model.tensor_parallel_size or grammar.compile_replicas"
        )
    shared = needed_shared_mib(settings)
    if machine.shared_mib < shared:
        yield (
            f"/dev/shm has {machine.shared_mib:.0f} MiB free and the settings need about {shared} MiB: make it larger "
            "(docker run --shm-size=1g, or mount -o remount,size=1g /dev/shm)"
        )


def needed_gib(settings: Settings, weights_gib: float) -> float:
    """Main memory that the whole service takes, about; weights and KV caches count only where they are not on a GPU."""
    model = settings.model
    workers = model.num_replicas * model.workers
    on_cpu = not model.gpus
    return (
        BASE_GIB
        + COMPILE_REPLICA_GIB * settings.grammar.compile_replicas
        + MODEL_REPLICA_GIB * model.num_replicas
        + WORKER_GIB * workers
        + (model.cpu_kv_cache_gib * workers + weights_gib * model.num_replicas if on_cpu else 0)
    )


def needed_shared_mib(settings: Settings) -> int:
    model = settings.model
    return OBJECT_STORE_MIB + REPLICA_SHARED_MIB * model.num_replicas * (1 + model.workers)


def weights_gib(path: str) -> float:
    """Size of the weights in a model's folder; 0 where there is none (the embedded model is in the base figure)."""
    folder = Path(path_of(path))
    if path == EMBEDDED or not folder.is_dir():
        return 0.0
    sizes = [sum(file.stat().st_size for file in folder.glob(pattern)) for pattern in WEIGHT_FILES]
    return max(sizes) / GIB


def inspect_machine() -> Machine:
    return Machine(
        available_gib=min(psutil.virtual_memory().available, _left_in_group()) / GIB,
        shared_mib=_free_mib(Path("/dev/shm")),  # POSIX shared memory
        gpus=count_gpus(),
        compiler=shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++"),
        redis_server=shutil.which("redis-server"),
    )


def count_gpus() -> int:
    """As the kernel shows them."""
    return len([path for path in Path("/dev").glob("nvidia[0-9]*") if path.name.removeprefix("nvidia").isdigit()])


def _left_in_group() -> float:
    """Bytes that this process's control group (a container, say) may still take."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        current = int((group / "memory.current").read_text(encoding="ascii"))
        cache = next(int(line.split()[1]) for line in (group / "memory.stat").read_text().splitlines() if line.startswith("inactive_file "))
    except (OSError, StopIteration, ValueError):
        return float("inf")
    return float("inf") if limit == "max" else int(limit) - current + cache


def _free_mib(folder: Path) -> float:
    return shutil.disk_usage(folder).free / 2**20 if folder.is_dir() else 0.0
