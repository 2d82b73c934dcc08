"""Network policies, disruption budgets and spread constraints choose by labels, and a wrong one chooses nobody, without a word."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.published.manifests import OVERLAYS, ROOT, cluster, groups, of_kind
from tests.unit.k8s.network import Pod, pods, reaches, selects

INTERNET = Pod("the internet", {}, namespace={})
STRANGER = Pod("a stranger", {"app": "other"})
FOREIGNER = Pod("one of another namespace", {"maskcast-role": "front"}, namespace={"kubernetes.io/metadata.name": "other"})
PROMETHEUS = Pod("Prometheus", {}, namespace={"kubernetes.io/metadata.name": "monitoring"})
OPERATOR = Pod("KubeRay", {"app.kubernetes.io/name": "kuberay-operator"}, namespace={"kubernetes.io/metadata.name": "ray-system"})
IMPOSTOR = Pod("one with KubeRay's label", OPERATOR.labels, namespace={"kubernetes.io/metadata.name": "other"})
INSIDER = Pod("one of our namespace with KubeRay's label", OPERATOR.labels)
DNS = Pod("DNS", {"k8s-app": "kube-dns"}, {"dns": 53}, namespace={"kubernetes.io/metadata.name": "kube-system"})
ANY = 40_000
"""A port that Ray has drawn."""


def open_to(overlay: str, source: Pod) -> set[tuple[str, str | int]]:
    """Roles and ports."""
    found = set[tuple[str, str | int]]()
    for role, target in pods(overlay).items():
        ports: list[str | int] = [*target.ports, ANY]
        found |= {(role, port) for port in ports if reaches(overlay, source, target, port)}
    return found


def doors(overlay: str) -> set[tuple[str, str | int]]:
    """What everybody reaches: where ingresses are, which is all workers."""
    return {(group["labels"]["maskcast-role"], "door") for group in cluster(overlay)["workerGroupSpecs"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_have_the_ports_that_policies_name(overlay: str) -> None:
    named = {
        entry["port"]
        for policy in of_kind(overlay, "NetworkPolicy")
        for rule in (*policy["spec"].get("ingress", []), *policy["spec"].get("egress", []))
        for entry in rule.get("ports", [])
        if isinstance(entry["port"], str)
    }
    assert named == {"door", "metrics", "dashboard", "redis"}
    assert named <= {port for pod in pods(overlay).values() for port in pod.ports}


@pytest.mark.parametrize("source", [INTERNET, STRANGER, FOREIGNER, IMPOSTOR, INSIDER], ids=lambda pod: pod.name)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_who_is_none_of_ours_reaches_the_ingresses_port_alone(overlay: str, source: Pod) -> None:
    assert open_to(overlay, source) == doors(overlay)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_redis_is_reached_by_those_ray_pods_that_need_it(overlay: str) -> None:
    reached = {
        (role, target)
        for role, source in pods(overlay).items()
        for target, pod in pods(overlay).items()
        if target.startswith("redis") and reaches(overlay, source, pod, "redis")
    }
    ours = {"front", "model"} & pods(overlay).keys()
    assert reached == {("head", "redis-gcs"), *((role, "redis-grammars") for role in ours)}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_redis_reaches_nobody(overlay: str) -> None:
    for role, source in pods(overlay).items():
        if role.startswith("redis"):
            assert not {target for target, _ in open_to(overlay, source)}
            assert not reaches(overlay, source, INTERNET, 443)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ray_pods_reach_each_other_on_ports_of_their_choice_and_names(overlay: str) -> None:
    ray = {role: pod for role, pod in pods(overlay).items() if not role.startswith("redis")}
    for source in ray.values():
        assert all(reaches(overlay, source, target, ANY) for target in ray.values())
        assert reaches(overlay, source, DNS, "dns")
        assert not reaches(overlay, source, STRANGER, ANY)
        assert not reaches(overlay, source, replace(DNS, namespace={"kubernetes.io/metadata.name": "anybody"}), "dns")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_only_the_head_asks_for_pods_and_nobody_else_leaves(overlay: str) -> None:
    for role, source in pods(overlay).items():
        assert reaches(overlay, source, INTERNET, 443) == (role == "head")
        assert not reaches(overlay, source, INTERNET, 80)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_those_who_watch_and_deploy_reach_what_they_need(overlay: str) -> None:
    ray = {role for role in pods(overlay) if not role.startswith("redis")}
    assert open_to(overlay, PROMETHEUS) == {*doors(overlay), *((role, "metrics") for role in ray)}
    assert open_to(overlay, OPERATOR) == {*doors(overlay), ("head", "dashboard")}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_guides_patch_says_where_the_operator_is(overlay: str) -> None:
    (block,) = re.findall(
        r"^```text\n(patches:.+?)^```", (ROOT / "docs" / "guide" / "operations.md").read_text(encoding="utf-8"), re.M | re.S
    )
    (patch,) = yaml.safe_load(block)["patches"]
    (change,) = yaml.safe_load(patch["patch"])
    found: Any
    (found,) = [each for each in of_kind(overlay, patch["target"]["kind"]) if each["metadata"]["name"] == patch["target"]["name"]]
    for step in change["path"].strip("/").split("/"):
        found = found[int(step) if step.isdigit() else step]
    assert found == OPERATOR.namespace
    assert found.keys() == change["value"].keys()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_budget_is_for_all_pods_of_one_group(overlay: str) -> None:
    chosen = [
        [role for role, pod in pods(overlay).items() if selects(each["spec"]["selector"], pod.labels)]
        for each in of_kind(overlay, "PodDisruptionBudget")
    ]
    of_groups = [group["labels"]["maskcast-role"] for group in groups(overlay)]
    assert sorted(role for roles in chosen for role in roles) == sorted(role for role in of_groups if role != "head")
    assert all(len(roles) <= 1 for roles in chosen)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_budget_lets_one_pod_of_the_smallest_group_go(overlay: str) -> None:
    """A `maxUnavailable` is counted from the scale of the pods' owner; a RayCluster tells none, and no pod would ever be let go."""
    smallest = {group["labels"]["maskcast-role"]: group["minReplicas"] for group in cluster(overlay)["workerGroupSpecs"]}
    for each in of_kind(overlay, "PodDisruptionBudget"):
        assert "maxUnavailable" not in each["spec"]
        stay = each["spec"]["minAvailable"]
        role = each["spec"]["selector"]["matchLabels"]["maskcast-role"]
        assert type(stay) is int  # a percentage would be counted from the same scale
        assert stay == smallest.get(role, 1) - 1


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_are_spread_among_those_of_their_own_group(overlay: str) -> None:
    everyone = pods(overlay)
    for group in groups(overlay):
        role, constraints = group["labels"]["maskcast-role"], group["template"]["spec"].get("topologySpreadConstraints", [])
        assert bool(constraints) == (role != "head")
        for constraint in constraints:
            assert [name for name, pod in everyone.items() if selects(constraint["labelSelector"], pod.labels)] == [role]
