"""Replicas of Ray Serve take calls on their node's address only (Ray Serve 2.60).

A replica opens a gRPC port for calls by handle once its constructor has returned, on all addresses of the machine. Its callers know it by
its node's address, which is the loopback address where Ray runs for one machine.
"""

from __future__ import annotations

import logging
from typing import Any

from ray._common.tls_utils import add_port_to_grpc_server
from ray.serve._private import replica
from ray.util import get_node_ip_address

EVERYWHERE = "[::]:0"
_log = logging.getLogger(__name__)


def listen_on_node_only() -> None:
    """For the constructor of whatever Ray Serve deploys; holds for this process."""
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
