"""What vLLM 0.32 reads from the environment when it is imported; set once, before the import."""

from __future__ import annotations

import logging
import os
from collections.abc import MutableMapping, Sequence
from itertools import pairwise

from grammar_service.own_memory import NUMPY_HUGE_PAGES
from model_service.settings import EngineSettings

BIND, UNBOUND = "VLLM_CPU_OMP_THREADS_BIND", "nobind"
"""Which CPUs each worker has of its own, and that none has any."""
_MODEL_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
_IMAGE_PIXELS = 16 << 20
"""64 MiB in Pillow. With vLLM's default of 179 million, a PNG of a few KB takes 850 MiB."""
_EMBEDDING_BYTES = 64 << 20
"""Per tensor: a prompt of 4,096 tokens with 4,096 float32 numbers each. vLLM's default is 2 GiB, and a request may have several."""
_PRIMITIVES = 128
"""That oneDNN keeps, one for each layer's shape and number of tokens in a step. With its own 1,024 a core of the embedded model grows from
850 to 1,120 MiB in 5,000 requests and does not stop at that; with 128 it has 866 from 3,000 on, in the same processor time (89 s, 91)."""

_log = logging.getLogger(__name__)


def prepare_environment(settings: EngineSettings, environment: MutableMapping[str, str] = os.environ) -> None:
    """Set what the operator has not set."""
    if settings.lookahead and settings.on_gpu and _MODEL_RUNNER not in environment:
        _log.warning("look-ahead takes vLLM's first model runner, where vLLM's default is the second, which verifies no drafts but its own")
    for name, value in _wanted(settings).items():
        environment.setdefault(name, value)


def _wanted(settings: EngineSettings) -> dict[str, str]:
    wanted = {
        # Otherwise vLLM writes structural tags of its own for tools; our ingress has already made the constraint.
        "VLLM_ENFORCE_STRICT_TOOL_CALLING": "0",
        NUMPY_HUGE_PAGES: "0",  # the memory that matchers take is then counted to the page
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_MAX_IMAGE_PIXELS": str(_IMAGE_PIXELS),
        "VLLM_MAX_EMBED_DECODE_BYTES": str(_EMBEDDING_BYTES),
    }
    if settings.lookahead or not settings.on_gpu:
        # The second model runner computes no rows for what it has not drafted itself. Its kernels are Triton's, which on a CPU is mostly
        # not there.
        wanted[_MODEL_RUNNER] = "0"
    if settings.otlp_endpoint is not None:
        # What has no caller who is traced is none of ours: vLLM would trace its own start, and the warm-up.
        traced = {"OTEL_TRACES_SAMPLER": "parentbased_always_off", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
        wanted.update(traced, OTEL_SERVICE_NAME="maskcast")
    if settings.on_gpu:
        # Ray's workers ask for a whole GPU otherwise, and wait for it in a bundle that has a part of one.
        wanted["VLLM_RAY_PER_WORKER_GPUS"] = f"{settings.gpus_per_worker:g}"
    else:
        wanted["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] = str(_PRIMITIVES)
        if settings.eager:
            # A few helpers are compiled all the same, at the first request that needs them: half a minute for nothing.
            wanted["TORCHDYNAMO_DISABLE"] = "1"
        wanted.update(_threads(sorted(os.sched_getaffinity(0)), settings.workers, settings.is_alone))
    return wanted


def _threads(cpus: Sequence[int], workers: int, is_alone: bool) -> dict[str, str]:
    """vLLM's own choice is one NUMA node a worker, which small machines do not have."""
    if is_alone and workers > 1:
        return {BIND: bind_threads(cpus, workers)}
    # Engines that are bound to the same CPUs wait for each other; and one worker is the engine core, which has more threads than OpenMP's.
    return {BIND: UNBOUND, "OMP_NUM_THREADS": str(max(1, (len(cpus) - 1) // workers))}


def bind_threads(cpus: Sequence[int], workers: int) -> str:
    """vLLM's notation for a fair split of the CPUs: `1|2,3`; with fewer CPUs than workers some share one.

    The first CPU is left to all other processes, where there are more than workers: threads spin while they wait for each other, and one
    that shares its CPU keeps the others waiting. Measured at the port on two cores, one thread instead of two is 1.8 times as fast.
    """
    cpus = cpus[1:] if len(cpus) > workers else cpus
    if len(cpus) < workers:
        return "|".join(str(cpus[rank % len(cpus)]) for rank in range(workers))
    share, extra = divmod(len(cpus), workers)
    starts = [rank * share + min(rank, extra) for rank in range(workers + 1)]
    return "|".join(",".join(map(str, cpus[low:high])) for low, high in pairwise(starts))
