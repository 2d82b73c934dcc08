"""Where the service listens: addresses that can be opened, and what clients on this machine call them."""

from __future__ import annotations

import errno
import random
import socket

from deployments.errors import StartError

FIRST_PORT, END_OF_PORTS = 20_000, 32_768
"""Ports that are chosen from: above those of Ray's workers, and below those that Linux gives to outgoing connections, one of which could
take a port in the half minute until a service opens it."""
_TRIES = 100
"""Ports, after which none is expected to be free."""


def free_port(host: str) -> int:
    """A port that nobody uses now; somebody may by the time it is opened. Raises StartError when this machine is not `host`, or none is
    free."""
    for port in random.sample(range(FIRST_PORT, END_OF_PORTS), _TRIES):
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise StartError(_sentence(host, port, error)) from error
        else:
            return port
    raise StartError(f"no port is free on {host}")


def port_fault(host: str, port: int) -> str | None:
    """Why the HTTP port cannot be opened, as one sentence; None when it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the server will: a connection of an earlier server that lingers is no obstacle.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return _sentence(host, port, error)
    return None


def local_url(host: str, port: int) -> str:
    """How a client on this machine reaches a server that listens on `host`, which may stand for all interfaces."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # compared, not bound
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _sentence(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken by another program: stop it, or choose another port (--port, or http.port in the settings)"
    if error.errno == errno.EACCES:
        return f"port {port} is reserved for root: choose one above 1023 (--port, or http.port in the settings)"
    return f"http.host: cannot listen on {host}: {error.strerror or error}"
