"""The application is built from settings in every form in which Ray Serve hands them over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import cast

import pytest
import yaml
from ray import serve
from ray.serve._private.api import call_user_app_builder_with_args_if_necessary
from ray.serve.config import RequestRouterConfig
from ray.serve.schema import ServeDeploySchema

from deployments.app import build, compile_pool
from deployments.builders import engine_settings
from deployments.config import Settings, load_settings, parse_settings
from deployments.config_model import ModelSettings
from deployments.errors import SettingsError
from deployments.fitting import fit
from deployments.names import INGRESS, MODEL
from deployments.replicas.placement import place
from router.request_router import SchemaRouter

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_it_is_built_from_settings_a_mapping_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("model: {num_replicas: 2}")
    for args in (Settings(), {}, {"model": {"num_replicas": 2}}, {"config": str(file)}):
        assert isinstance(build(args), serve.Application)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"model\.replicas"):
        build({"model": {"replicas": 2}})


def test_a_grammar_in_the_settings_that_nobody_enforces_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"grammars\.word\.regex"):
        build({"grammars": {"word": {"regex": "("}}})


def test_the_compile_pool_is_scaled_where_the_settings_give_two_numbers() -> None:
    fixed = compile_pool(parse_settings({"grammar": {"compile_replicas": 3}}))._bound_deployment
    assert fixed.num_replicas == 3
    scaled = compile_pool(parse_settings({"grammar": {"compile_replicas": 1, "max_compile_replicas": 4}}))._bound_deployment
    limits = scaled._deployment_config.autoscaling_config
    assert limits is not None
    assert (limits.min_replicas, limits.max_replicas) == (1, 4)


def test_model_requests_are_routed_as_the_settings_say() -> None:
    def router(**settings: object) -> RequestRouterConfig:
        model = {"num_replicas": 2, "max_num_seqs": 32, "engine_args": {"max_num_batched_tokens": 512}}
        built = build(parse_settings({"router": settings, "model": model}))
        models = cast(tuple[serve.Application, ...], built._bound_deployment.init_args)[-1]
        return models._bound_deployment._deployment_config.request_router_config

    schema = router(bound=1.5)
    assert schema.get_request_router_class() is SchemaRouter
    assert schema.request_router_kwargs == {"bound": 1.5, "seats": 32, "prefill_budget": 512}
    assert router(policy="power_of_two") == RequestRouterConfig()


def test_seats_are_those_that_the_engine_is_told_of() -> None:
    built = build(parse_settings({"model": {"num_replicas": 2, "engine_args": {"max-num-seqs": 48}}}))
    models = cast(tuple[serve.Application, ...], built._bound_deployment.init_args)[-1]
    assert models._bound_deployment._deployment_config.request_router_config.request_router_kwargs["seats"] == 48


def test_a_single_replica_has_the_door_in_it() -> None:
    def name(tree: dict[str, object]) -> str:
        return build(parse_settings(tree))._bound_deployment.name

    assert name({}) == MODEL
    assert name({"model": {"num_replicas": 2}}) == INGRESS
    assert name({"http": {"num_replicas": 2}}) == INGRESS


def test_a_way_of_routing_that_is_not_known_is_refused() -> None:
    for wrong in ({"policy": "random"}, {"bound": 0.5}):
        with pytest.raises(SettingsError, match=r"router\."):
            build({"router": wrong})


def test_the_serve_configuration_example_is_one_that_serve_deploys() -> None:
    schema = ServeDeploySchema.model_validate(yaml.safe_load((EXAMPLES / "serve_config.yaml").read_text()))
    (application,) = schema.applications
    assert application.import_path == "deployments.app:build"
    assert isinstance(call_user_app_builder_with_args_if_necessary(cast(FunctionType, build), application.args), serve.Application)


@pytest.mark.parametrize("name", ["two_replicas_tp2.yaml", "gpu_tp2.yaml"])
def test_the_settings_examples_are_valid(name: str) -> None:
    settings = load_settings(EXAMPLES / name, {"MASKCAST_ARTIFACT_SECRET": "s" * 32})
    assert settings.model.tensor_parallel_size == 2


def test_workers_that_are_children_share_one_bundle_with_their_replica() -> None:
    placement = place(ModelSettings(tensor_parallel_size=2, gpus_per_worker=1, cpus_per_worker=2, executor="mp"))
    assert placement.actor == {"num_cpus": 4, "num_gpus": 2}
    assert placement.bundles == [{"CPU": 4, "GPU": 2}]


def test_workers_that_are_actors_have_a_bundle_each() -> None:
    placement = place(ModelSettings(tensor_parallel_size=2, gpus_per_worker=1, cpus_per_worker=2, executor="ray"))
    assert placement.actor == {"num_cpus": 2, "num_gpus": 0}
    assert placement.bundles == [{"CPU": 4, "GPU": 1}, {"CPU": 2, "GPU": 1}]


@pytest.mark.parametrize("arguments", [{"pipeline_parallel_size": 3}, {"pipeline-parallel-size": 3}])
def test_the_stages_of_a_pipeline_are_placed_too(arguments: dict[str, object]) -> None:
    shape = {"tensor_parallel_size": 2, "gpus_per_worker": 1, "cpus_per_worker": 1, "engine_args": arguments}
    assert len(place(ModelSettings.model_validate({**shape, "executor": "ray"})).bundles) == 6
    assert place(ModelSettings.model_validate({**shape, "executor": "mp"})).actor == {"num_cpus": 6, "num_gpus": 6}


def test_replicas_may_share_a_gpu() -> None:
    placement = place(ModelSettings(gpus_per_worker=0.5, executor="ray", cpus_per_worker=1))
    assert placement.bundles == [{"CPU": 2, "GPU": 0.5}]


DRAFT = {"path": "small", "engine_args": {"gpu_memory_utilization": 0.2}}


@pytest.mark.parametrize(
    ("model", "share"),
    [
        ({}, 0.9),
        ({"gpus_per_worker": 1}, 0.9),
        ({"gpus_per_worker": 0.5}, 0.45),
        ({"gpus_per_worker": 0.5, "gpu_memory_utilization": 0.3}, 0.3),
        ({"gpus_per_worker": 1, "gpu_memory_utilization": 0.95}, 0.95),
        ({"gpus_per_worker": 1, "gpu_memory_utilization": 0.7, "lookahead": True, "draft": DRAFT}, 0.7),
    ],
)
def test_those_who_share_a_gpu_share_its_memory(model: dict[str, object], share: float) -> None:
    """vLLM refuses to start where less is free than it may take."""
    assert engine_settings(parse_settings({"model": model})).gpu_memory_utilization == pytest.approx(share)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({"engine_args": {"data_parallel_size": 2}}, "num_replicas"),
        ({"engine_args": {"enable-sleep-mode": True}}, "num_replicas"),
        ({"engine_args": {"lora_modules": [{"name": "a", "path": "b"}]}}, "enable_lora"),
        ({"engine_args": {"enable_lora": True, "lora_modules": [{"path": "b"}]}}, "name"),
        ({"served_name": "a", "engine_args": {"enable_lora": True, "lora_modules": ["a=b"]}}, "names of their own"),
        ({"engine_args": {"data-parallel-size": 2}}, "num_replicas"),
        ({"engine_args": {"pipeline-parallel-size": 2}}, "set tensor_parallel_size"),
        ({"engine_args": {"distributed_executor_backend": "ray"}}, "set executor"),
        ({"executor": "ray"}, "gpus_per_worker"),
        ({"tensor_parallel_size": 2, "gpus_per_worker": 0.5}, "a GPU each"),
        ({"gpus_per_worker": 2}, "gpus_per_worker"),
        ({"gpus_per_worker": 0.5, "gpu_memory_utilization": 0.6}, "share its memory"),
        ({"gpus_per_worker": 0.5, "engine_args": {"gpu-memory-utilization": 0.9}}, "share its memory"),
        ({"gpus_per_worker": 1, "lookahead": True, "draft": {"path": "small"}}, "the model and its draft share a GPU"),
        ({"gpus_per_worker": 1, "engine_args": {"prefill-context-parallel-size": 2}}, "set tensor_parallel_size"),
    ],
)
def test_what_cannot_be_placed_is_refused_with_a_word_on_what_to_do(model: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        fit(parse_settings({"model": model}), gpus=0)


def test_a_shared_cache_without_a_secret_is_refused() -> None:
    with pytest.raises(SettingsError, match="artifact_secret"):
        build({"redis": {"url": "redis://localhost:6379"}})


def test_replicas_stand_where_the_settings_say() -> None:
    model, grammar, http = {"num_replicas": 2, "nodes": {"role": "model"}}, {"nodes": {"role": "cpu"}}, {"nodes": {"zone": "!b"}}
    built = build(parse_settings({"model": model, "grammar": grammar, "http": http}))
    compilers, models = cast(tuple[serve.Application, ...], built._bound_deployment.init_args)[-2:]
    for deployed, labels in ((built, {"zone": "!b"}), (compilers, {"role": "cpu"})):
        assert (deployed._bound_deployment.ray_actor_options or {})["label_selector"] == labels
    assert models._bound_deployment._replica_config.placement_group_bundle_label_selector == [{"role": "model"}]


@pytest.mark.parametrize("nodes", [{"role": "!in(a, b)"}, {"ro le": "a"}, {"role": ""}])
def test_nodes_are_named_by_labels_alone(nodes: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"model\.nodes"):
        build({"model": {"nodes": nodes}})


def test_ends_wait_for_the_answers_under_way() -> None:
    for ingresses in (1, 2):
        built = build(parse_settings({"http": {"num_replicas": ingresses, "drain_s": 600, "leave_s": 60}}))
        assert built._bound_deployment._deployment_config.graceful_shutdown_timeout_s > 660


def test_no_deployment_writes_a_line_for_each_call() -> None:
    rewards = {"brief": {"import_path": "model_service.lookahead.rewards.length:Length", "args": {"least": 0, "most": 4}}}
    for replicas in (1, 2):
        model = {"num_replicas": replicas, "lookahead": True, "rewards": rewards}
        deployed = {each._bound_deployment.name: each for each in _deployed(build({"model": model, "telemetry": {"logs": "json"}}))}
        assert len(deployed) == replicas + 2
        for name, each in deployed.items():
            logging = each._bound_deployment._deployment_config.logging_config or {}
            assert (logging.get("enable_access_log"), logging.get("encoding")) == (False, "JSON"), name


def _deployed(application: serve.Application) -> Iterator[serve.Application]:
    """It and those that it is given."""
    yield application
    given = application._bound_deployment.init_args
    for each in (value for one in given for value in (one.values() if isinstance(one, dict) else (one,))):
        if isinstance(each, serve.Application):
            yield from _deployed(each)
