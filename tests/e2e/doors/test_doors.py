"""What of a running service the network reaches, and whom Ray obeys."""

from __future__ import annotations

import os
import pickle
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import psutil
import pytest
from ray.serve.generated.serve_pb2 import ASGIRequest  # type: ignore[attr-defined]  # made when it is imported
from ray.serve.generated.serve_pb2_grpc import ASGIServiceStub

from tests.e2e.service import Service

LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
SECOND_ADDRESS = "127.0.0.2"
"""Also this machine's: whatever listens on all addresses answers here too."""
RAY = Path(sys.executable).parent / "ray"


def listeners(mark: str = "") -> Iterator[tuple[psutil.Process, str, int]]:
    """The process, address and port of everything that takes connections in this process and those below it."""
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # also what has ended and waits for its parent
            if mark in " ".join([process.name(), *process.cmdline()]):
                for found in process.net_connections(kind="tcp"):
                    if found.status == psutil.CONN_LISTEN:
                        yield process, found.laddr.ip, found.laddr.port


def test_nothing_listens_on_another_address_than_the_loopback(service: Service) -> None:
    found = [(process.name(), address, port) for process, address, port in listeners()]
    assert len(found) > 10
    assert not [each for each in found if each[1] not in LOOPBACK]


def test_a_second_address_of_the_machine_reaches_no_port(service: Service) -> None:
    ports = {port for _, _, port in listeners()}
    reached = []
    for port in ports:
        with socket.socket() as client:
            client.settimeout(5)
            if client.connect_ex((SECOND_ADDRESS, port)) == 0:
                reached.append(port)
    assert ports
    assert not reached


def status(**environment: str) -> subprocess.CompletedProcess[str]:
    """What `ray status` says, asked by somebody who is told only what the shell file tells, overridden by `environment`."""
    shell = Path(os.environ["RAY_AUTH_TOKEN_PATH"]).with_name("ray.env")
    assert stat.S_IMODE(shell.stat().st_mode) == 0o600
    mine = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    told = "".join(f"export {name}='{value}'; " for name, value in environment.items())
    return subprocess.run(
        ["bash", "-c", f'. "{shell}"; {told}exec "{RAY}" status'], env=mine, capture_output=True, text=True, timeout=120, check=False
    )


def test_ray_obeys_who_has_the_token(service: Service) -> None:
    done = status()
    assert done.returncode == 0, done.stderr
    assert "Resources" in done.stdout


@pytest.mark.parametrize("mode", ["disabled", "token"])
def test_ray_refuses_who_has_no_token_or_another_one(service: Service, mode: str, tmp_path: Path) -> None:
    other = tmp_path / "token"
    other.write_text("f" * 64)
    done = status(RAY_AUTH_MODE=mode, RAY_AUTH_TOKEN_PATH=str(other))
    assert done.returncode != 0
    assert "Resources" not in done.stdout
    assert "auth" in (done.stdout + done.stderr).lower()


def test_the_token_is_readable_by_this_user_alone(service: Service) -> None:
    token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    assert len(token.read_text()) == 64


class Writes:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def test_a_replica_unpickles_no_call_without_the_token(service: Service, tmp_path: Path) -> None:
    written = tmp_path / "written"
    call = ASGIRequest(pickled_request_metadata=pickle.dumps(Writes(written)))
    codes = []
    for _, _, port in listeners("ServeReplica"):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, pytest.raises(grpc.RpcError) as refused:
            ASGIServiceStub(channel).HandleRequest(call, timeout=20)
        codes.append(refused.value.code())
    assert codes.count(grpc.StatusCode.UNAUTHENTICATED) >= 3  # two compile replicas, a model replica with the door
    assert not written.exists()
