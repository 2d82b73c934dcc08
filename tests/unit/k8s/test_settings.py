"""`serveConfigV2` is Ray Serve's configuration and our settings, and the pods are cut for what they say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from ray import serve

from deployments.api.bounds.connection import ConnectionBounds
from deployments.api.http.server import KEEP_ALIVE_S
from deployments.app import CLOSING_S, build
from deployments.config import Settings
from deployments.local.environment import defaults
from deployments.local.preflight import OBJECT_STORE_MIB, REPLICA_SHARED_MIB
from deployments.names import APPLICATION, INGRESS
from tests.published.manifests import (
    OVERLAYS,
    Object,
    amount,
    cluster,
    container,
    environment,
    groups,
    serve_config,
    service,
    settings,
    workers,
)

ON_CPU = ("cpu-dev",)
ACROSS_NODES = ("gpu-multi-node",)
LOOPBACK = {"VLLM_HOST_IP", "GLOO_SOCKET_IFNAME"}
OF_ONE_MACHINE = {"RAY_DEDUP_LOGS", "REPORTER_UPDATE_INTERVAL_MS", *LOOPBACK}


def models(overlay: str) -> Object:
    return workers(overlay, "front" if overlay in ON_CPU else "model")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_application_is_ours(overlay: str, tmp_path: Path) -> None:
    schema = serve_config(overlay)
    assert schema.proxy_location == "Disabled"  # the ingresses listen themselves
    (application,) = schema.applications
    assert (application.name, application.import_path) == (APPLICATION, "deployments.app:build")
    assert [each.name for each in application.deployments] == [INGRESS]
    if overlay in ON_CPU:  # the others have their tokenizer in a volume
        assert isinstance(build(settings(overlay, tmp_path)), serve.Application)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ports_and_paths_are_those_of_the_ingress(overlay: str, tmp_path: Path) -> None:
    chosen = settings(overlay, tmp_path).http
    for group in cluster(overlay)["workerGroupSpecs"]:
        door = container(group)
        (port,) = [each["containerPort"] for each in door["ports"] if each["name"] == "door"]
        assert (chosen.host, chosen.port) == ("0.0.0.0", port)
        probe = door["readinessProbe"]["httpGet"]
        assert probe == {"path": "/healthz", "port": "door"}  # as docs/guide/operations.md lists it


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_files_of_the_settings_are_mounted_in_every_pod(overlay: str) -> None:
    args = serve_config(overlay).applications[0].args
    named = [Path(args["secrets_file"]), Path(args["http"]["api_keys_file"])]
    for group in groups(overlay):
        mounted = {Path(each["mountPath"]) for each in container(group)["volumeMounts"]}
        token = Path(environment(group)["RAY_AUTH_TOKEN_PATH"])
        assert {file.parent for file in (*named, token)} <= mounted


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_replicas_stand_on_pods_that_there_are(overlay: str, tmp_path: Path) -> None:
    chosen = settings(overlay, tmp_path)
    for nodes in (chosen.model.nodes, chosen.grammar.nodes):
        assert any(nodes.items() <= group["labels"].items() for group in cluster(overlay)["workerGroupSpecs"])
    assert cluster(overlay)["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    # One ingress a pod, by `max_replicas_per_node`; they ask for no CPU, so that the head must be ruled out.
    assert chosen.http.nodes == {"maskcast-role": f"!{cluster(overlay)['headGroupSpec']['labels']['maskcast-role']}"}
    assert chosen.http.num_replicas == sum(group["minReplicas"] for group in cluster(overlay)["workerGroupSpecs"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_engines_fit_the_pods_in_whatever_order_replicas_start(overlay: str, tmp_path: Path) -> None:
    chosen, group = settings(overlay, tmp_path), models(overlay)
    limits = container(group)["resources"]["limits"]
    gpus, cpus = amount(limits.get("nvidia.com/gpu", 0)), math.ceil(amount(limits["cpu"]))
    size, replicas = chosen.model.tensor_parallel_size, chosen.model.num_replicas
    per_pod = 1 if overlay not in ACROSS_NODES else 1 / group["minReplicas"]
    assert replicas == per_pod * group["minReplicas"]
    assert size * chosen.model.gpus == gpus / per_pod
    compilers = chosen.grammar.compile_replicas * chosen.grammar.cpus_per_compiler
    engine = size * chosen.model.cpus_per_worker * per_pod
    shared = chosen.grammar.nodes == chosen.model.nodes
    assert engine + (compilers if shared else 0) <= cpus
    assert gpus or 2 * engine > cpus  # two engines never share a pod
    front = math.ceil(amount(container(workers(overlay, "front"))["resources"]["limits"]["cpu"])) * workers(overlay, "front")["minReplicas"]
    assert compilers <= front


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_shared_memory_has_room_for_what_processes_exchange(overlay: str, tmp_path: Path) -> None:
    chosen = settings(overlay, tmp_path)
    for group in groups(overlay):
        (volume,) = [each["emptyDir"] for each in group["template"]["spec"]["volumes"] if each["name"] == "shared-mem"]
        assert volume["medium"] == "Memory"
        store = amount(group["rayStartParams"]["object-store-memory"])
        assert store == OBJECT_STORE_MIB * 2**20
        engine = REPLICA_SHARED_MIB * (1 + chosen.model.tensor_parallel_size) * 2**20 if group is models(overlay) else 0
        assert store + engine <= amount(volume["sizeLimit"]) <= amount(container(group)["resources"]["limits"]["memory"]) / 2


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_whoever_ends_has_longer_than_the_longest_answer(overlay: str, tmp_path: Path) -> None:
    chosen: Settings = settings(overlay, tmp_path)
    longest = chosen.limits.request_timeout_s
    assert longest < chosen.http.drain_s
    ends = chosen.http.leave_s + chosen.http.drain_s + CLOSING_S
    for group in cluster(overlay)["workerGroupSpecs"]:
        *command, within = container(group)["lifecycle"]["preStop"]["exec"]["command"]
        assert command == ["maskcast", "drain", "--within"]
        assert ends < float(within) < group["template"]["spec"]["terminationGracePeriodSeconds"]
    # Clients keep connections to the cluster before, and may begin a stream on them at the very end.
    assert service(overlay)["rayClusterDeletionDelaySeconds"] > longest + ConnectionBounds().max_age_s + KEEP_ALIVE_S


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_get_no_clients_any_more_when_their_ingress_shuts_its_door(overlay: str, tmp_path: Path) -> None:
    for group in cluster(overlay)["workerGroupSpecs"]:
        probe = container(group)["readinessProbe"]
        noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
        assert noticed < settings(overlay, tmp_path).http.leave_s


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_environment_is_that_of_a_service_on_one_machine(overlay: str, tmp_path: Path) -> None:
    wanted = {
        name: value for name, value in defaults(settings(overlay, tmp_path), Path("/home/maskcast")).items() if name not in OF_ONE_MACHINE
    }
    for group in groups(overlay):
        assert wanted.items() <= environment(group).items()
    own = {name: value for name, value in environment(models(overlay)).items() if name in LOOPBACK}
    assert bool(own) == (overlay not in ACROSS_NODES)  # engines in one pod stay on its loopback address
