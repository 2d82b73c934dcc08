"""A node of a Ray cluster is emptied before it ends (Ray 2.60): Ray Serve starts its replicas elsewhere, and they answer what they have."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import ray
from ray._private.state import actors
from ray._raylet import GcsClient  # type: ignore[attr-defined]  # compiled, and not declared
from ray.core.generated.autoscaler_pb2 import DRAIN_NODE_REASON_PREEMPTION  # type: ignore[attr-defined]  # made when it is imported
from ray.exceptions import RayError

from deployments.errors import StatusError

REPLICA = "SERVE_REPLICA"
POLL_S = 1.0


def drain(within_s: float, node: str | None = None, left: Callable[[int], None] = lambda count: None) -> bool:
    """Nothing new comes to this node of the cluster at RAY_ADDRESS, or to the one with the id `node`; returns when no replica is
    left on it (True), or `within_s` are over. `left` is told how many there are still, each second.

    Ray Serve ends a replica in order once another one has taken its place, and without one as long before the end as it may take
    (`http.drain_s` and some seconds).

    Raises:
        StatusError: no cluster is there, or it does not let the node go.
    """
    deadline = time.monotonic() + within_s
    try:
        ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        raise StatusError(f"no Ray cluster is here: {error}") from error
    try:
        wanted = node or ray.get_runtime_context().get_node_id()
        _announce(wanted, time.time() + within_s)
        while (count := _replicas(wanted)) and time.monotonic() < deadline:
            left(count)
            time.sleep(POLL_S)
        return not count
    finally:
        ray.shutdown()


def _announce(node: str, deadline: float) -> None:
    """`deadline` in seconds since the epoch, as Ray has it."""
    client = GcsClient(address=ray.get_runtime_context().gcs_address)
    accepted, reason = client.drain_node(node, DRAIN_NODE_REASON_PREEMPTION, "the node is about to end", int(deadline * 1000))
    if not accepted:
        raise StatusError(f"Ray does not let the node go: {reason}")


def _replicas(node: str) -> int:
    alive = actors(actor_state_name="ALIVE").values()
    return sum(actor["Address"]["NodeID"] == node and actor["Name"].startswith(REPLICA) for actor in alive)
