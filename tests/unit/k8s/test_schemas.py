"""Every object of every overlay is one that a Kubernetes API server would take."""

from __future__ import annotations

import copy
from typing import Any

import kubernetes_validate
import pytest

from tests.published.manifests import OVERLAYS, Object, built, groups, of_kind
from tests.unit.k8s.crd import closed, definition, faults, with_defaults
from tests.unit.k8s.monitoring_kinds import MONITORING, kind_of

KUBERNETES = "1.34"
CUSTOM = {"RayService", *MONITORING}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_objects_of_kubernetes_follow_its_schemas(overlay: str) -> None:
    for each in built(overlay):
        if each["kind"] not in CUSTOM:
            kubernetes_validate.validate(each, KUBERNETES, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_service_follows_the_definition_of_its_kind(overlay: str) -> None:
    (service,) = of_kind(overlay, "RayService")
    assert faults(service, definition("rayservices")) == []


@pytest.mark.parametrize("kind", MONITORING)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_objects_of_prometheus_operator_have_its_fields(overlay: str, kind: str) -> None:
    (found,) = of_kind(overlay, kind)
    assert faults(found, kind_of(kind)) == []


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("ServiceMonitor", ("endpoints", 0, "metricRelabelings", 0, "source_labels"), ["a"]),
        ("ServiceMonitor", ("endpoints", 0, "interval"), "15 seconds"),
        ("ServiceMonitor", ("endpoints", 0, "metricRelabelings", 0, "action"), "rename"),
        ("ServiceMonitor", ("selector", "matchLabel"), {}),
        ("PrometheusRule", ("groups", 0, "rules", 0, "for"), "soon"),
        ("PrometheusRule", ("groups", 0, "rules", 0, "severity"), "critical"),
        ("PrometheusRule", ("groups", 0, "rules", 0, "labels", "severity"), 1),
    ],
)
def test_a_wrong_object_of_prometheus_operator_is_found_to_be_wrong(kind: str, place: tuple[str | int, ...], value: object) -> None:
    (found,) = copy.deepcopy(of_kind("high-availability", kind))
    inside: Any = found["spec"]
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    assert len(faults(found, kind_of(kind))) == 1


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_are_such_as_kubernetes_takes(overlay: str) -> None:
    for group in groups(overlay):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": group["template"]["spec"]}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


CLUSTER = ("spec", "rayClusterConfig")
GROUP = (*CLUSTER, "workerGroupSpecs", 0)
POD = (*GROUP, "template", "spec")
CONTAINER = (*POD, "containers", 0)
GONE = object()


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        ((*POD, "nodeselector"), {}, "'nodeselector' was unexpected"),
        ((*GROUP, "minReplica"), 1, "'minReplica' was unexpected"),
        ((*CONTAINER, "env", 0, "valueform"), {}, "'valueform' was unexpected"),
        ((*CONTAINER, "readinessProbe", "httpGet", "prt"), 80, "'prt' was unexpected"),
        ((*GROUP, "replicas"), "two", "'two' is not of type 'integer'"),
        ((*CONTAINER, "resources", "limits", "memory"), "8 gigabytes", "does not match"),
        ((*CONTAINER, "ports", 0, "containerPort"), GONE, "'containerPort' is a required property"),
        ((*GROUP, "groupName"), GONE, "'groupName' is a required property"),
        ((*CLUSTER, "headGroupSpec"), GONE, "'headGroupSpec' is a required property"),
        ((*CLUSTER, "autoscalerOptions", "version"), "v3", "'v3' is not one of"),
        ((*CLUSTER, "gcsFaultToleranceOptions", "backend"), "etcd", "'etcd' is not one of"),
    ],
)
def test_a_wrong_service_is_found_to_be_wrong(place: tuple[str | int, ...], value: object, fault: str) -> None:
    (service,) = copy.deepcopy(of_kind("high-availability", "RayService"))
    inside: Any = service
    for step in place[:-1]:
        inside = inside[step]
    if value is GONE:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    found = faults(service, definition("rayservices"))
    assert len(found) == 1, found
    assert fault in found[0]


def test_what_a_definition_gives_by_itself_is_there_before_it_is_judged() -> None:
    inner = {"type": "object", "required": ["b"], "properties": {"b": {"type": "integer", "default": 1}}}
    schema = closed(
        {"type": "object", "properties": {"a": {**inner, "default": {}}, "m": {"type": "object", "additionalProperties": inner}}}
    )
    assert with_defaults({"m": {"any": {}}}, schema) == {"a": {"b": 1}, "m": {"any": {"b": 1}}}
    assert faults({"m": {"any": {}}}, schema) == []
    assert faults({"m": {"any": {"c": 2}}}, schema)


def test_a_wrong_object_of_kubernetes_is_found_to_be_wrong() -> None:
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "imag": "b"}]}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_metrics_are_scraped_by_a_port_that_all_ray_pods_have(overlay: str) -> None:
    (monitor,) = of_kind(overlay, "ServiceMonitor")
    (service,) = [
        each
        for each in of_kind(overlay, "Service")
        if monitor["spec"]["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
    ]
    (endpoint,) = monitor["spec"]["endpoints"]
    (port,) = service["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    for group in groups(overlay):
        assert port["targetPort"] in {each["name"] for each in group["template"]["spec"]["containers"][0]["ports"]}
        own = {**group["template"]["metadata"]["labels"], "ray.io/is-ray-node": "yes"}  # KubeRay gives its pods the second
        assert service["spec"]["selector"].items() <= own.items()
