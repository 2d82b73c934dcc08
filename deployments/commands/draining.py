"""A node of a Ray cluster is emptied before it ends (Ray 2.60): Ray Serve starts its replicas elsewhere, and they answer what they have."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

import ray
from ray._private.state import actors
from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled, and not declared
from ray.core.generated.autoscaler_pb2 import DRAIN_NODE_REASON_PREEMPTION  # type: ignore[attr-defined]  # made when it is imported
from ray.exceptions import RayError
from ray.util import placement_group_table

from deployments.errors import StatusError

REPLICA = "SERVE_REPLICA"
POLL_S = 1.0


def drain(within_s: float, node: str | None = None, left: Callable[[int], None] = lambda count: None) -> bool:
    """Nothing new comes to this node of the cluster at RAY_ADDRESS, or to the one with the id `node`; returns when no replica has
    anything on it any more (True), or `within_s` are over. `left` is told how many there are still, each second.

    Ray Serve ends a replica in order once another one has taken its place, and without one as long before the end as it may take
    (`http.drain_s` and some seconds). It looks at the node of the replica's own process: where only workers of an engine are here, that
    node is emptied as well.

    Raises:
        StatusError: no cluster is there, or it does not let a node go.
    """
    deadline, ends = time.monotonic() + within_s, time.time() + within_s
    try:
        ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        raise StatusError(f"no Ray cluster is here: {error}") from error
    try:
        wanted = node or ray.get_runtime_context().get_node_id()
        told = {wanted}
        _announce(wanted, ends)
        while (homes := touching(wanted, _replicas(), _bundles())) and time.monotonic() < deadline:
            for home in {*homes.values()} - told:
                _announce(home, ends)
            told |= {*homes.values()}
            left(len(homes))
            time.sleep(POLL_S)
        return not homes
    finally:
        ray.shutdown()


def touching(node: str, homes: Mapping[str, str], bundles: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The replicas whose process, or one of whose bundles, is on the node. `homes` are the nodes of their processes, `bundles` those of
    their placement groups, both by name."""
    return {name: home for name, home in homes.items() if node == home or node in bundles.get(name, ())}


def _announce(node: str, deadline: float) -> None:
    """`deadline` in seconds since the epoch, as Ray has it."""
    client = GcsClient(address=ray.get_runtime_context().gcs_address)
    accepted, reason = client.drain_node(node, DRAIN_NODE_REASON_PREEMPTION, "the node is about to end", int(deadline * 1000))
    if not accepted:
        raise StatusError(f"Ray does not let the node go: {reason}")


def _replicas() -> dict[str, str]:
    alive = actors(actor_state_name="ALIVE").values()
    return {actor["Name"]: actor["Address"]["NodeID"] for actor in alive if actor["Name"].startswith(REPLICA)}


def _bundles() -> dict[str, set[str]]:
    """Ray Serve gives a replica's placement group the name of its actor."""
    groups = placement_group_table().values()
    return {group["name"]: {*group["bundles_to_node_id"].values()} for group in groups if group["state"] != "REMOVED"}
