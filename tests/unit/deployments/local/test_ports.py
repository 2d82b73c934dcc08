"""Ports that are chosen for a service."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deployments.errors import StartError
from deployments.local.ports import END_OF_PORTS, FIRST_PORT, free_port

HOST = "127.0.0.1"


def test_a_port_is_free_and_none_that_a_connection_to_others_could_take() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(50):
        port = free_port(HOST)
        assert FIRST_PORT <= port < min(END_OF_PORTS, first)
        with socket.socket() as server:
            server.bind((HOST, port))
            server.listen()


def test_ports_that_are_taken_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        taken, free = server.getsockname()[1], free_port(HOST)
        chosen = [taken, free]
        monkeypatch.setattr("deployments.local.ports.random.sample", lambda ports, count: chosen)
        assert free_port(HOST) == free
        chosen = [taken]
        with pytest.raises(StartError, match=r"no port is free on 127\.0\.0\.1"):
            free_port(HOST)


def test_a_host_that_is_not_this_machine_is_named() -> None:
    with pytest.raises(StartError, match=r"cannot listen on 192\.0\.2\.1"):
        free_port("192.0.2.1")
