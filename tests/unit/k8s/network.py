"""Who reaches whom by an overlay's network policies, as their documentation has it (kubernetes.io, "Network Policies"): a connection needs
what its source may send and its target may take, and where no policy of that direction is for a pod, that is anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.published.manifests import Object, container, groups, of_kind

OURS = {"kubernetes.io/metadata.name": "maskcast"}
RAY_NODE = {"ray.io/is-ray-node": "yes"}
"""KubeRay gives its pods this label, and those of their group."""


@dataclass(frozen=True)
class Pod:
    """`ports` by name. The internet is one without any label, and no namespace."""

    name: str
    labels: Mapping[str, str]
    ports: Mapping[str, int] = field(default_factory=dict)
    namespace: Mapping[str, str] = field(default_factory=lambda: OURS)


def pods(overlay: str) -> dict[str, Pod]:
    """Of each kind one, by its role."""
    return {pod.labels["maskcast-role"]: pod for pod in _pods(overlay)}


def reaches(overlay: str, source: Pod, target: Pod, port: str | int) -> bool:
    """`port`: one of the target's names, or a number that has none."""
    policies = of_kind(overlay, "NetworkPolicy")
    return _lets(policies, "Egress", source, target, target, port) and _lets(policies, "Ingress", target, source, target, port)


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a label selector chooses what has these labels."""
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def _lets(policies: list[Object], direction: str, own: Pod, other: Pod, target: Pod, port: str | int) -> bool:
    """Whether the policies for a pod let it have connections with another one."""
    if own.namespace != OURS:
        return True
    rules, mine = direction.lower(), [each["spec"] for each in policies if selects(each["spec"]["podSelector"], own.labels)]
    concerned = [spec for spec in mine if direction in spec["policyTypes"]]
    return not concerned or any(_matches(rule, direction, other, target, port) for spec in concerned for rule in spec.get(rules, []))


def _matches(rule: Object, direction: str, other: Pod, target: Pod, port: str | int) -> bool:
    peers = rule.get("from" if direction == "Ingress" else "to")
    numbers = {each["port"] if isinstance(each["port"], int) else target.ports.get(each["port"]) for each in rule.get("ports", [])}
    wanted = target.ports.get(port, port) if isinstance(port, str) else port
    return (not numbers or wanted in numbers) and (peers is None or any(_is_peer(peer, other) for peer in peers))


def _is_peer(peer: Object, pod: Pod) -> bool:
    assert peer.keys() <= {"podSelector", "namespaceSelector"}
    near = selects(peer["namespaceSelector"], pod.namespace) if "namespaceSelector" in peer else pod.namespace == OURS
    return bool(pod.namespace) and near and selects(peer.get("podSelector", {}), pod.labels)


def _pods(overlay: str) -> Iterator[Pod]:
    for group in groups(overlay):
        labels = {**group["template"]["metadata"]["labels"], **group["labels"], **RAY_NODE}
        yield Pod(group.get("groupName", "head"), labels, _ports(container(group)))
    for each in of_kind(overlay, "StatefulSet"):
        template = each["spec"]["template"]
        yield Pod(each["metadata"]["name"], template["metadata"]["labels"], _ports(template["spec"]["containers"][0]))


def _ports(of_container: Object) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in of_container["ports"]}
