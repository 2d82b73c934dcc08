"""Every object of every overlay is one that a Kubernetes API server would take."""

from __future__ import annotations

import copy

import kubernetes_validate
import pytest

from tests.manifests import OVERLAYS, Object, built, groups, of_kind
from tests.unit.k8s.crd import definition, faults

KUBERNETES = "1.34"
CUSTOM = {"RayService", "ServiceMonitor", "PrometheusRule"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_objects_of_kubernetes_follow_its_schemas(overlay: str) -> None:
    for each in built(overlay):
        if each["kind"] not in CUSTOM:
            kubernetes_validate.validate(each, KUBERNETES, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_service_follows_the_definition_of_its_kind(overlay: str) -> None:
    (service,) = of_kind(overlay, "RayService")
    assert faults(service, definition("rayservices")) == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_are_such_as_kubernetes_takes(overlay: str) -> None:
    for group in groups(overlay):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": group["template"]["spec"]}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_a_field_that_is_not_declared_is_found() -> None:
    (service,) = copy.deepcopy(of_kind("cpu-dev", "RayService"))
    service["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["nodeselector"] = {}
    (fault,) = faults(service, definition("rayservices"))
    assert "nodeselector" in fault
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
