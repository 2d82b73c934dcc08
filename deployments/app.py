"""The Ray Serve application: `deployments.app:build`, for `serve run`, `serve deploy` and KubeRay's `serveConfigV2`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import ray
from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.handle import DeploymentHandle

from deployments.api.deployment import IngressDeployment
from deployments.builders import engine_seats
from deployments.config import GrammarSettings, Settings, load_settings, parse_settings
from deployments.fitting import fit
from deployments.grammars.registration import settings_grammars
from deployments.names import APPLICATION, COMPILER, INGRESS, MODEL, REWARD
from deployments.replicas.compiler import CompilerDeployment
from deployments.replicas.modelling import ModelDeployment
from deployments.replicas.placement import place
from deployments.replicas.rewarding import RewardDeployment
from deployments.single import SingleDeployment

CONSISTENT_HASH = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
SCHEMA = "router.request_router.SchemaRouter"
REPORT_PERIOD_S = 1.0
STEP_TOKENS = 2048
"""What a router takes a step to compute until a replica has said it: the default of vLLM's server (0.32) for one worker on a CPU. On large
GPUs it is 8,192 or more."""
# Of the processes on a request's way: Ray Serve on the same event loop as what it serves, and gRPC between them. Measured at the port, a
# tenth more requests a second.
LEAN = {
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    "RAY_SERVE_USE_GRPC_BY_DEFAULT": "1",
    "RAY_SERVE_FREEZE_GC_ON_STARTUP": "1",
}
CALL_MIB = 4
"""Of a call between processes, what gRPC takes where nothing is set."""
HEALTH_PERIOD_S = 2.0
HEALTH_TIMEOUT_S = 30.0
REWARD_END_S = 2.0
"""One that hangs does not end by itself."""
CLOSING_S = 10.0
"""For what closes after the last answer: an engine, connections."""


def lean(settings: Settings) -> dict[str, str]:
    """The environment of such processes: a call holds a request's body, and its constraint besides."""
    longest = max(CALL_MIB, 2 * settings.http.max_body_mib + 1)
    return {**LEAN, "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(int(longest * 2**20))}


def build(args: Mapping[str, Any] | Settings) -> serve.Application:
    """The application for settings that are given whole, as a mapping (`args` in a Serve configuration file), or in a file that
    `{"config": PATH}` names. Ray Serve takes builders of exactly one parameter.

    Raises:
        SettingsError: a setting is unknown or wrong, or a grammar in the settings is enforced by no backend.
    """
    return build_with(args, ModelDeployment)


def build_with(args: Mapping[str, Any] | Settings, model: type[ModelDeployment]) -> serve.Application:
    """The same, with `model` as the class of the model replicas."""
    settings = _settings(args)
    settings_grammars(settings)
    compilers = _handle(compile_pool(settings))
    rewards = {name: _handle(reward_application(name, settings)) for name in settings.model.rewards}
    if settings.is_single and model is ModelDeployment:
        return _model_deployment(settings, SingleDeployment, settings.http.max_ongoing_requests).bind(
            settings, APPLICATION, compilers, rewards
        )
    models = _handle(_model_deployment(settings, model, settings.model.max_ongoing_requests).bind(settings, compilers, rewards))
    return _ingress(settings, compilers, models)


def _settings(args: Mapping[str, Any] | Settings) -> Settings:
    if not isinstance(args, Settings):
        args = load_settings(Path(args["config"])) if set(args) == {"config"} else parse_settings(args)
    return fit(args, ray.cluster_resources().get("GPU", 0) if ray.is_initialized() else 0).settings


def compile_pool(settings: Settings) -> serve.Application:
    """The compile pool alone, for jobs that only want grammars; its handle is what `CompilePool` takes."""
    grammar = settings.grammar
    deployment = serve.deployment(
        name=COMPILER,
        **_scale(grammar),
        ray_actor_options={"num_cpus": grammar.cpus_per_compiler, **_on(grammar.nodes)},
        # With fallbacks, a replica that is slow to say how long its queue is would have its keys compiled elsewhere once more.
        request_router_config=RequestRouterConfig.model_validate(
            {"request_router_class": CONSISTENT_HASH, "request_router_kwargs": {"num_fallback_replicas": 0}}
        ),
        max_ongoing_requests=grammar.max_ongoing_compiles,
        max_queued_requests=grammar.max_queued_compiles,
        health_check_period_s=HEALTH_PERIOD_S,
        health_check_timeout_s=HEALTH_TIMEOUT_S,
        logging_config=_logging(settings),
    )
    return deployment(CompilerDeployment).bind(settings)


def _on(nodes: Mapping[str, str]) -> dict[str, Any]:
    """Of an actor's options, where it may stand."""
    return {"label_selector": dict(nodes)} if nodes else {}


def _scale(grammar: GrammarSettings) -> dict[str, Any]:
    """Compile replicas come and go with the requests that wait in them, or there is a fixed number."""
    if grammar.max_compile_replicas is None:
        return {"num_replicas": grammar.compile_replicas}
    least, most = grammar.compile_replicas, max(grammar.compile_replicas, grammar.max_compile_replicas)
    return {"autoscaling_config": {"min_replicas": least, "max_replicas": most, "target_ongoing_requests": 2 * grammar.compile_workers}}


def reward_application(name: str, settings: Settings) -> serve.Application:
    """One of the rewards that the settings name."""
    reward = settings.model.rewards[name]
    deployment = serve.deployment(
        name=f"{REWARD}{name}",
        num_replicas=reward.num_replicas,
        ray_actor_options={"num_cpus": reward.cpus, "num_gpus": reward.gpus},
        health_check_period_s=HEALTH_PERIOD_S,
        health_check_timeout_s=HEALTH_TIMEOUT_S,
        graceful_shutdown_timeout_s=REWARD_END_S,
        logging_config=_logging(settings),
    )
    return deployment(RewardDeployment).bind(reward, settings.model.reward_deadline_s)


def _model_deployment(settings: Settings, replica: type[ModelDeployment], max_ongoing: int) -> serve.Deployment:
    model = settings.model
    placement = place(model)
    deployment = serve.deployment(
        name=MODEL,
        num_replicas=model.num_replicas,
        ray_actor_options={**placement.actor, "runtime_env": {"env_vars": lean(settings)}},
        request_router_config=_router(settings),
        placement_group_bundles=placement.bundles,
        placement_group_bundle_label_selector=cast(list[dict[str, str]], [model.nodes] if model.nodes else None),
        placement_group_strategy="PACK",
        max_ongoing_requests=max_ongoing,
        max_queued_requests=model.max_queued_requests,
        health_check_period_s=HEALTH_PERIOD_S,
        health_check_timeout_s=HEALTH_TIMEOUT_S,
        graceful_shutdown_timeout_s=_end_s(settings),
        logging_config=_logging(settings),
    )
    return deployment(replica)


def _router(settings: Settings) -> RequestRouterConfig:
    router, model = settings.router, settings.model
    if router.policy == "power_of_two":
        return RequestRouterConfig()
    given = {name.replace("-", "_"): value for name, value in model.engine_args.items() if isinstance(value, int)}
    limits = {
        "bound": router.bound,
        "seats": engine_seats(settings),
        "prefill_budget": given.get("max_num_batched_tokens", STEP_TOKENS),
    }
    return RequestRouterConfig.model_validate(
        {"request_router_class": SCHEMA, "request_router_kwargs": limits, "request_routing_stats_period_s": REPORT_PERIOD_S}
    )


def _end_s(settings: Settings) -> float:
    """What a replica's end may take, an API server's too: single replicas have one."""
    return settings.http.leave_s + settings.http.drain_s + CLOSING_S


def _ingress(settings: Settings, compilers: DeploymentHandle[Any], models: DeploymentHandle[Any]) -> serve.Application:
    http = settings.http
    deployment = serve.deployment(
        name=INGRESS,
        num_replicas=http.num_replicas,
        ray_actor_options={"num_cpus": 0, "runtime_env": {"env_vars": lean(settings)}, **_on(http.nodes)},
        max_ongoing_requests=http.max_ongoing_requests,
        health_check_period_s=HEALTH_PERIOD_S,
        health_check_timeout_s=HEALTH_TIMEOUT_S,
        graceful_shutdown_timeout_s=_end_s(settings),
        logging_config=_logging(settings),
    )
    return deployment(IngressDeployment).bind(settings, APPLICATION, compilers, models)


def _logging(settings: Settings) -> dict[str, Any]:
    """What Ray Serve writes: no line for each call, as it would; `/metrics` counts the requests."""
    return {"enable_access_log": False, "encoding": settings.telemetry.logs.upper()}


def _handle(application: serve.Application) -> DeploymentHandle[Any]:
    """What a bound deployment becomes in the constructor that it is handed to (Ray Serve 2.60)."""
    return cast(DeploymentHandle[Any], application)
