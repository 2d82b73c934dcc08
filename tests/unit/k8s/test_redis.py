"""What each Redis keeps and lets go, and when it is started again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.published.manifests import K8S, OVERLAYS, amount, of_kind

POLICIES = {"maskcast-redis-grammars": "volatile-lru", "maskcast-redis-gcs": "noeviction"}
UNITS = {"kb": "Ki", "mb": "Mi", "gb": "Gi"}


def containers(overlay: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0] for each in of_kind(overlay, "StatefulSet")}


def configured(name: str) -> dict[str, str]:
    lines = (K8S / "base" / f"{name.removeprefix('maskcast-')}.conf").read_text(encoding="utf-8").splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_evicts_what_it_may_and_has_memory_left_to_rewrite_its_file(overlay: str) -> None:
    found = containers(overlay)
    assert found.keys() == POLICIES.keys()
    for name, container in found.items():
        config = configured(name)
        assert config["maxmemory-policy"] == POLICIES[name]
        most = config["maxmemory"]
        assert 0 < amount(most[:-2] + UNITS[most[-2:]]) <= amount(container["resources"]["limits"]["memory"]) / 2


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_one_that_still_reads_its_file_gets_no_clients_and_is_left_to_read(overlay: str) -> None:
    """PING is an error until all is read; the port is open before."""
    for container in containers(overlay).values():
        assert "redis-cli ping" in container["readinessProbe"]["exec"]["command"][-1]
        assert container["livenessProbe"]["tcpSocket"] == {"port": "redis"}
