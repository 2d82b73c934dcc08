"""A node that has only a part of a replica is emptied as one that has its process: on a Ray of several nodes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from load_tests.faults.ray_nodes import RayNodes
from load_tests.faults.waiting import wait_for
from tests.published.manifests import ROOT

pytestmark = pytest.mark.timeout(300)
IMPORT = "tests.integration.deployments.spread_replica:app"
CONFIG = {"proxy_location": "Disabled", "applications": [{"name": "spread", "route_prefix": None, "import_path": IMPORT}]}


def running(nodes: RayNodes) -> dict[str, str]:
    """Nodes by replica."""
    deployments: dict[str, Any] = nodes.serve()["applications"]["spread"]["deployments"]
    replicas = [each for deployment in deployments.values() for each in deployment["replicas"]]
    return {each["replica_id"]: each["node_id"] for each in replicas if each["state"] == "RUNNING"}


def test_a_node_that_has_only_workers_of_a_replica_is_left_once_another_replica_is_there() -> None:
    with RayNodes({"PYTHONPATH": str(ROOT)}) as nodes:
        for name in ("first", "second"):
            nodes.add(name, 1, {})
        wait_for(lambda: nodes.serve()["applications"] == {}, 180, "Ray's dashboard")
        file = nodes.folder / "serve.yaml"
        file.write_text(yaml.safe_dump(CONFIG))
        nodes.deploy(file)
        wait_for(lambda: running(nodes), 120, "a replica on two nodes")
        before = running(nodes)
        (home,) = before.values()
        (other,) = {nodes.node_id(name) for name in ("first", "second")} - {home}
        nodes.add("third", 2, {})
        nodes.run("maskcast", "drain", "--node", other, "--within", "120")
        after = running(nodes)
        assert not after.keys() & before.keys()
        assert [*after.values()] == [nodes.node_id("third")]
