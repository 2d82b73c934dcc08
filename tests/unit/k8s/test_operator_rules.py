"""What KubeRay 1.7 asks of a RayService beyond its schema (`controllers/ray/utils/validation.go`), and what Kubernetes asks of pods."""

from __future__ import annotations

import math
import re

import pytest
import yaml

from tests.published.locks import requirements
from tests.published.manifests import K8S, OVERLAYS, ROOT, amount, built, cluster, container, groups, of_kind, service

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
RAY = next(each.specifier for each in requirements(LOCK) if each.name == "ray")

GUIDE = (ROOT / "docs" / "guide" / "operations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_groups_of_pods_are_such_as_the_operator_takes(overlay: str) -> None:
    names = [each["groupName"] for each in cluster(overlay)["workerGroupSpecs"]]
    assert len(set(names)) == len(names)
    for group in cluster(overlay)["workerGroupSpecs"]:
        assert 0 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for group in groups(overlay):
        assert not {"labels", "resources"} & group["rayStartParams"].keys()
        assert "resources" not in group  # together with rayStartParams it is refused
        assert "restartPolicy" not in group["template"]["spec"]  # the autoscaler of version 2 sets it


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_the_operator_sets_is_left_to_it(overlay: str) -> None:
    for group in groups(overlay):
        names = {each["name"] for each in container(group)["env"]}
        assert not names & {"RAY_REDIS_ADDRESS", "REDIS_PASSWORD", "REDIS_USERNAME", "RAY_enable_autoscaler_v2", "RAY_CLUSTER_NAME"}
    assert "serviceName" not in cluster(overlay)["headGroupSpec"].get("headService", {})
    assert "upgradeStrategy" not in cluster(overlay)  # it is the RayService's
    assert service(overlay)["upgradeStrategy"]["type"] in {"NewCluster", "NewClusterWithIncrementalUpgrade", "None"}
    assert not cluster(overlay)["authOptions"].get("enableK8sTokenAuth")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ray_is_of_the_version_in_the_lock(overlay: str) -> None:
    assert str(RAY) == f"=={cluster(overlay)['rayVersion']}"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_images_are_of_this_version_of_the_project_and_for_the_devices_of_the_pods(overlay: str) -> None:
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    on_gpus = any("nvidia.com/gpu" in container(group)["resources"]["limits"] for group in groups(overlay))
    for group in groups(overlay):
        assert container(group)["image"].endswith(f"/maskcast:{version}-{'gpu' if on_gpus else 'cpu'}")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nobody_is_root_or_can_become_it(overlay: str) -> None:
    pods = [each["template"]["spec"] for each in (*groups(overlay), *(found["spec"] for found in of_kind(overlay, "StatefulSet")))]
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in pod["containers"]:
            context = each["securityContext"]
            assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
            assert context["capabilities"] == {"drop": ["ALL"]}
    assert cluster(overlay)["autoscalerOptions"]["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_say_what_they_take(overlay: str) -> None:
    pods = [each["template"]["spec"] for each in (*groups(overlay), *(found["spec"] for found in of_kind(overlay, "StatefulSet")))]
    for pod in pods:
        for each in pod["containers"]:
            for resource in ("cpu", "memory"):
                asked, most = (amount(each["resources"][kind][resource]) for kind in ("requests", "limits"))
                assert 0 < asked <= most
            assert each["resources"]["requests"]["memory"] == each["resources"]["limits"]["memory"]
            assert {"livenessProbe", "readinessProbe"} <= each.keys()


def test_the_overlay_for_one_machine_and_the_guide_say_what_its_pods_ask_for() -> None:
    overlay = OVERLAYS[0]
    of_ray = [(group.get("minReplicas", 1), container(group)["resources"]) for group in groups(overlay)]
    of_redis = [(1, each["spec"]["template"]["spec"]["containers"][0]["resources"]) for each in of_kind(overlay, "StatefulSet")]
    asked = [*of_ray, *of_redis, (1, cluster(overlay)["autoscalerOptions"]["resources"])]
    cpus, memory = (sum(pods * amount(each["requests"][name]) for pods, each in asked) for name in ("cpu", "memory"))
    said = [
        re.findall(r"(\d+) CPUs(?:,| and) (\d+) GB", text)
        for text in (
            (K8S / "overlays" / overlay / "kustomization.yaml").read_text(encoding="utf-8").splitlines()[0],
            *(line for line in GUIDE.splitlines() if f"overlays/{overlay}`" in line),
        )
    ]
    assert said == [[(str(math.ceil(cpus)), str(math.ceil(memory / 1e9)))]] * 2


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_secret_stands_in_the_manifests(overlay: str) -> None:
    assert of_kind(overlay, "Secret") == []
    for group in groups(overlay):
        secrets = {each["secret"]["secretName"] for each in group["template"]["spec"]["volumes"] if "secret" in each}
        assert secrets == {"maskcast-settings", "maskcast-api-keys", "maskcast-ray-token"}
        assert {each["name"]: each.get("value") for each in container(group)["env"]}["RAY_AUTH_TOKEN"] == ""


def test_the_guide_makes_all_secrets_that_are_asked_for() -> None:
    made = set(re.findall(r"kubectl create secret generic (\S+)", GUIDE))
    text = yaml.safe_dump_all([each for overlay in OVERLAYS for each in built(overlay)])
    named = set(re.findall(r"secretName: (\S+)", text)) | set(re.findall(r"secretKeyRef:\s+key: \S+\s+name: (\S+)", text))
    assert made == named


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_traffic_goes_to_pods_with_an_ingress_alone(overlay: str) -> None:
    """Of the service's ports the operator keeps name and number, and it selects all pods of all worker groups (`common/service.go`,
    `BuildServeService`; `common/pod.go`, `BuildPod`): those that are not ready get none."""
    (port,) = service(overlay)["serveService"]["spec"]["ports"]
    assert port.keys() == {"name", "port"}
    assert port["name"] == "serve"
    for group in cluster(overlay)["workerGroupSpecs"]:
        doors = {each["name"]: each["containerPort"] for each in container(group)["ports"]}
        assert doors["door"] == port["port"]
        assert container(group)["readinessProbe"]["httpGet"]["port"] == "door"
    assert service(overlay)["excludeHeadPodFromServeSvc"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_logs_leave_most_of_what_they_share_to_others(overlay: str) -> None:
    """Ray keeps two logs of each process of its own, and as many of each worker; without an end of theirs, pods are evicted together."""
    for group in groups(overlay):
        told = {each["name"]: each.get("value") for each in container(group)["env"]}
        of_a_log = int(told["RAY_ROTATION_MAX_BYTES"]) * (1 + int(told["RAY_ROTATION_BACKUP_COUNT"]))
        volumes = {each["name"]: each for each in group["template"]["spec"]["volumes"]}
        assert 64 * of_a_log <= amount(volumes["tmp"]["emptyDir"]["sizeLimit"]) / 2
