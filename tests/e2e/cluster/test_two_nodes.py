"""The application of the overlay cpu-dev on two nodes: it is there, changes, loses a node in order, and loses one without warning."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deployments.config import Settings
from deployments.local.environment import defaults
from deployments.local.processes import SHARED_MEMORY, segments_of
from deployments.local.redis_server import RedisServer
from load_tests.faults.clients import FAILED, STRUCK, WHOLE, Clients
from load_tests.faults.deployed import Deployed
from load_tests.faults.ray_nodes import RayNodes
from load_tests.faults.waiting import wait_for
from load_tests.reporting.running_service import ONE_THREAD
from tests.published.manifests import amount, container, environment, serve_config, workers

pytestmark = pytest.mark.timeout(1200)
OVERLAY, ROLE = "cpu-dev", "front"
OF_THIS_MACHINE = {"TORCHINDUCTOR_CACHE_DIR": defaults(Settings(), Path.home())["TORCHINDUCTOR_CACHE_DIR"], **ONE_THREAD}


def below() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def segments() -> set[str]:
    return {each.name for each in SHARED_MEMORY.iterdir()}


def held() -> set[str]:
    """Whoever else runs on this machine makes some as well."""
    return {name for pid in psutil.pids() for name in segments_of(pid)}


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    """From the `serveConfigV2` of the overlay, on nodes that are cut as its pods are."""
    before, earlier, pods = below(), segments(), workers(OVERLAY, ROLE)
    config = serve_config(OVERLAY).model_dump(exclude_unset=True, mode="json")
    with RayNodes({**environment(pods), **OF_THIS_MACHINE}) as nodes, RedisServer(parent=nodes.folder) as redis:
        cluster = Deployed(nodes, redis, config, amount(container(pods)["resources"]["limits"]["cpu"]), pods["labels"])
        cluster.start()
        yield cluster
    assert below() <= before
    assert segments() - held() <= earlier
    assert not nodes.folder.exists()


@pytest.fixture
def two_nodes(deployed: Deployed) -> Deployed:
    """Settled on both, whatever the test before this one has taken away."""
    if not deployed.nodes.is_up(deployed.other):
        deployed.add()
    deployed.wait_until_settled(400)
    return deployed


def test_it_answers_over_http(two_nodes: Deployed) -> None:
    assert two_nodes.ready()["replicas"] == {"ModelReplica": 2, "GrammarCompiler": 2}
    for node in (two_nodes.lasting, two_nodes.other):
        assert {"Ingress", "ModelReplica"} <= {each.deployment for each in two_nodes.on(node)}
    answer = two_nodes.ask(guided_regex="[a-f]{12}", max_tokens=32).json()
    assert len(answer["choices"][0]["message"]["content"]) == 12


def test_a_drained_node_ends_when_its_streams_have(two_nodes: Deployed) -> None:
    nodes, node = two_nodes.nodes, two_nodes.other
    ingress, id_ = two_nodes.door(node), nodes.node_id(node)
    with Clients(two_nodes, 0, plain=1) as others, Clients(two_nodes, 3, letters=1000, door=ingress) as streams:
        draining = nodes.begin("maskcast", "drain", "--node", id_, "--within", "120")
        wait_for(
            lambda: [each for each in two_nodes.replicas() if each.pid == ingress.pid and each.state == "STOPPING"], 60, "its end to begin"
        )
        earlier = streams.ends[WHOLE]
        assert streams.open
        said, _ = draining.communicate(timeout=150)
        assert draining.returncode == 0, said
        assert streams.ends[WHOLE] > earlier
        wait_for(lambda: not nodes.is_up(node), 60, "the node to end")
    assert set(streams.ends) == set(others.ends) == {WHOLE}, (streams.ends, others.ends)
    assert two_nodes.ready()["status"] == "degraded"


def test_changed_settings_reach_it_in_place_and_no_stream_is_dropped(two_nodes: Deployed) -> None:
    before = frozenset(each.id for each in two_nodes.replicas())
    assert two_nodes.ask(n=3, max_tokens=1).status_code == 200
    two_nodes.args["limits"] = {"max_sequences": 2}
    with Clients(two_nodes, 2) as streams:  # with more, two cores leave a compile pool that starts too little
        two_nodes.deploy()
        two_nodes.wait_until_settled(540, without=before)
    assert streams.ends[WHOLE] > 3
    assert [each for each in streams.ended if each.how != WHOLE] == []
    for _ in range(8):  # at either ingress
        refused = two_nodes.ask(n=3, max_tokens=1)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "over_limit")


def test_a_lost_node_costs_the_streams_that_it_held_and_the_connections_to_its_own_ingress(two_nodes: Deployed) -> None:
    nodes, node = two_nodes.nodes, two_nodes.other
    doors = two_nodes.door(two_nodes.lasting), two_nodes.door(node)
    with (
        Clients(two_nodes, 3, door=doors[0]) as streams,
        Clients(two_nodes, 0, plain=3, door=doors[0]) as others,
        Clients(two_nodes, 2, door=doors[1]) as struck,
    ):
        begun = time.monotonic()
        nodes.kill(node)
        wait_for(lambda: nodes.has_ended(node), 60, "the node to end")
        wait_for(lambda: two_nodes.ready()["status"] == "degraded", 60, "the loss to be noticed")
        wait_for(lambda: all(group.back_s(begun) for group in (streams, others, struck)), 120, "answers by the node that is left")
    assert [each for each in others.ended if each.how != WHOLE] == []  # nothing of their answers had been sent
    assert set(streams.ends) <= {WHOLE, FAILED}, streams.ends
    assert streams.ends[FAILED] <= 3
    assert set(struck.ends) <= {WHOLE, FAILED, STRUCK}, struck.ends
