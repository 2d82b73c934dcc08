"""From the settings tree to what the rooms below ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deployments.config import Settings
from deployments.config_model import EMBEDDED, SMOLLM2
from grammar_service.artifacts.cache import MemoryCache, RedisCache, TieredCache
from grammar_service.artifacts.cache.link import LinkCounters, RedisLink
from grammar_service.limits import Limits
from grammar_service.mac import Secret
from grammar_service.registry import RegistryStore, Room
from grammar_service.registry.entry import OVERHEAD_BYTES
from grammar_service.registry.store import RegistryCounters
from grammar_service.sandbox import SandboxSettings
from grammar_service.vocabulary.source import TokenizerSource
from model_service.embedded.smollm2 import smollm2_folder
from model_service.settings import DraftSettings, EngineSettings, by_name

PATIENCE_MS = 1000
"""For what no generation waits for: registering, deleting and listing names."""
COUNTING_MS = 1000
"""At least, for what tenants use, since nothing else tells it: beside floods on two processors, Redis itself answered in up to 0.3 s."""
CPU_SEQUENCES = 128
"""Of each worker: the default of vLLM's server on a CPU (0.32, `engine/arg_utils.py`). On GPUs it is 256 or more."""
EMBEDDED_WEIGHTS = Path(__file__).resolve().parents[1] / "model_service" / "embedded" / "weights"


def model_path(settings: Settings) -> str:
    """A folder, or a name on the hub."""
    return path_of(settings.model.path)


def path_of(model: str) -> str:
    """The same of what `model.path` says."""
    own = {EMBEDDED: EMBEDDED_WEIGHTS, SMOLLM2: smollm2_folder()}.get(model)
    return model if own is None else str(own)


def tokenizer_source(settings: Settings) -> TokenizerSource:
    """As the engines read it."""
    return TokenizerSource.of(model_path(settings), by_name(settings.model.engine_args))


def engine_settings(settings: Settings, mask_socket: str | None = None) -> EngineSettings:
    """`mask_socket`: of the node's mask broadcaster, None: there is none."""
    model = settings.model
    return EngineSettings(
        model=model_path(settings),
        served_name=model.served_name,
        gpus_per_worker=model.gpus,
        tensor_parallel_size=model.tensor_parallel_size,
        executor=model.executor,
        dtype=model.dtype,
        max_model_len=model.max_model_len,
        max_num_seqs=model.max_num_seqs,
        cpu_kv_cache_gib=model.cpu_kv_cache_gib,
        gpu_memory_utilization=model.gpu_memory,
        tool_call_parser=model.tool_call_parser,
        reasoning_parser=model.reasoning_parser,
        jump_forward=model.jump_forward,
        prompt_lookup=model.prompt_lookup,
        lookahead=model.lookahead,
        draft=None if model.draft is None else DraftSettings(model.draft.path, model.draft.engine_args),
        reward_deadline_s=model.reward_deadline_s,
        grammar_memory_mib=model.grammar_memory_mib,
        count_mask_rows=model.count_mask_rows,
        mask_socket=mask_socket,
        mask_deadline_ms=model.mask_deadline_ms,
        restart_wait_s=model.restart_wait_s,
        hang_s=model.hang_s,
        is_alone=model.num_replicas == 1,
        otlp_endpoint=settings.telemetry.otlp_endpoint,
        engine_args=_engine_args(settings),
    )


def _engine_args(settings: Settings) -> dict[str, Any]:
    """With what vLLM gives to requests that say nothing of `max_tokens`."""
    given, most, name = settings.model.engine_args, settings.limits.max_tokens, "override_generation_config"
    return given if most is None else {**given, name: {**given.get(name, {}), "max_new_tokens": most}}


def engine_seats(settings: Settings) -> int:
    """Sequences that one engine runs together, as far as requests are let into it."""
    model = settings.model
    given = by_name(model.engine_args).get("max_num_seqs", model.max_num_seqs)
    if not isinstance(given, int):
        given = model.max_ongoing_requests if model.gpus else CPU_SEQUENCES * model.workers
    return min(given, model.max_ongoing_requests)


def limits(settings: Settings) -> Limits:
    grammar = settings.grammar
    return Limits(grammar.max_constraint_bytes, grammar.max_nesting, grammar.max_choices)


def sandbox_settings(settings: Settings) -> SandboxSettings:
    grammar = settings.grammar
    return SandboxSettings(
        limits=limits(settings),
        memory_limit_bytes=grammar.compile_memory_mib << 20,
        output_limit_bytes=grammar.max_artifact_mib << 20,
        workers=grammar.compile_workers,
        max_waiting=grammar.max_waiting_compiles,
        canonical=grammar.canonical,
    )


def secret(settings: Settings) -> Secret:
    """The one that seals, then the other one that is believed, if there is one."""
    both = (settings.artifact_secret, settings.other_artifact_secret)
    return tuple(each.get_secret_value().encode() for each in both if each is not None)


def open_redis(settings: Settings) -> RedisCache | None:
    """A client of the shared cache; it connects when it is first used."""
    redis = settings.redis
    if redis.url is None:
        return None
    return RedisCache(
        url=redis.url,
        password=_password(settings),
        namespace=redis.namespace,
        timeout_ms=redis.timeout_ms,
        ttl_s=redis.ttl_s,
        max_value_bytes=redis.max_value_mib << 20,
        ca_file=redis.ca_file,
    )


def open_link(settings: Settings, counters: LinkCounters, least_ms: int = 0) -> RedisLink | None:
    """Connects when it is first used, and waits `least_ms` for an answer where the settings say less; None without a shared cache."""
    redis = settings.redis
    if redis.url is None:
        return None
    return RedisLink(redis.url, _password(settings), max(redis.timeout_ms, least_ms), counters, ca_file=redis.ca_file)


def open_registry(settings: Settings) -> RegistryStore | None:
    """The registered grammars; None without a shared cache. Connects when it is first used."""
    redis, counters = settings.redis, RegistryCounters()
    quick = open_link(settings, counters)
    if redis.url is None or quick is None:
        return None
    patient = RedisLink(redis.url, _password(settings), PATIENCE_MS, counters, retries=1, ca_file=redis.ca_file)
    bound = settings.grammar.max_constraint_bytes + OVERHEAD_BYTES
    return RegistryStore(quick, counters, redis.namespace, secret(settings), bound, patient)


def registry_room(settings: Settings) -> Room:
    grammar = settings.grammar
    return Room(grammar.max_registered, int(grammar.max_registered_mib * 2**20), int(grammar.max_registered_mib_of_all * 2**20))


def open_cache(settings: Settings) -> TieredCache:
    return TieredCache(MemoryCache(settings.grammar.memory_cache_mib << 20), open_redis(settings))


def _password(settings: Settings) -> str | None:
    password = settings.redis.password
    return password.get_secret_value() if password else None
