"""What the constructor of a replica sets for its process (Ray Serve 2.60, vLLM 0.32)."""

from __future__ import annotations

import logging
import os
from typing import Any

from ray import get_runtime_context
from ray._common.tls_utils import add_port_to_grpc_server
from ray.serve._private import replica
from ray.util import get_node_ip_address

EVERYWHERE = "[::]:0"
_log = logging.getLogger(__name__)


def listen_on_node_only() -> None:
    """A replica opens a gRPC port for calls by handle once its constructor has returned, on all addresses of the machine. Its callers know
    it by its node's address, which is the loopback address where Ray runs for one machine."""
    replica.add_port_to_grpc_server = _add_port  # type: ignore[attr-defined]  # what it has imported itself


def _add_port(server: Any, address: str) -> int:
    """The port that was opened. A node that is known by an address that it does not have, of a gateway say, listens on all it has."""
    if address != EVERYWHERE:
        return int(add_port_to_grpc_server(server, address))
    host = get_node_ip_address()
    own = f"[{host}]:0" if ":" in host else f"{host}:0"
    try:
        return int(add_port_to_grpc_server(server, own))
    except RuntimeError:
        _log.warning("this replica takes calls on all addresses of its machine: it cannot listen on %s alone", own)
        return int(add_port_to_grpc_server(server, address))


def tell_children() -> None:
    """Tell all that this process starts from here on which Ray it belongs to: vLLM's engine core is one, and places its workers with Ray.

    Only `ray start` writes down where a Ray is. Who looks for one without being told starts another, which knows of no placement group.
    vLLM tells its children itself, but not where it is told how to start them (`VLLM_WORKER_MULTIPROC_METHOD`).
    """
    os.environ["RAY_ADDRESS"] = get_runtime_context().gcs_address
