from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from deployments.errors import StartError
from deployments.local.ports import free_port
from deployments.local.redis_server import HOST, RedisServer

PARENT = """
from deployments.local.redis_server import RedisServer
server = RedisServer()
server.start()
print(server.pid, flush=True)
input()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(parent=tmp_path) as running:
        yield running


def client(server: RedisServer, password: str | None = None) -> redis.Redis:
    return redis.Redis(HOST, server.port, password=password, socket_timeout=5)


def password(server: RedisServer) -> str:
    return server.password.get_secret_value()


def test_it_answers_once_started(server: RedisServer) -> None:
    with client(server, password(server)) as connection:
        assert connection.set("key", b"value")
        assert connection.get("key") == b"value"


@pytest.mark.parametrize("wrong", [None, "guess"])
def test_without_the_password_nothing_is_answered(server: RedisServer, wrong: str | None) -> None:
    with client(server, wrong) as connection, pytest.raises(redis.AuthenticationError):
        connection.get("key")


def test_the_password_is_in_no_command_line_and_in_no_file_of_others(server: RedisServer, tmp_path: Path) -> None:
    assert password(server) not in " ".join(psutil.Process(server.pid).cmdline())
    (configuration,) = tmp_path.rglob("redis.conf")
    assert stat.S_IMODE(configuration.stat().st_mode) == 0o600
    assert password(server) not in server.url


def test_it_forgets_old_entries_instead_of_refusing_new_ones(server: RedisServer) -> None:
    with client(server, password(server)) as connection:
        policy = connection.config_get("maxmemory-policy")
    assert policy == {"maxmemory-policy": "volatile-lru"}


def test_stop_leaves_no_process_and_no_folder(server: RedisServer, tmp_path: Path) -> None:
    pid = server.pid
    server.stop()
    assert not psutil.pid_exists(pid)
    assert not list(tmp_path.iterdir())
    server.stop()


def test_a_suspended_server_stops_too(server: RedisServer, tmp_path: Path) -> None:
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    server.stop()
    assert not psutil.pid_exists(pid)
    assert not list(tmp_path.iterdir())


def test_it_starts_again_at_the_same_address_after_a_crash(server: RedisServer) -> None:
    url, old, secret = server.url, server.pid, password(server)
    os.kill(old, signal.SIGKILL)
    server.stop()
    server.start()
    assert server.url == url
    assert server.pid != old
    with client(server, secret) as connection:
        assert connection.ping()


def test_a_killed_parent_leaves_no_server() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin
    assert parent.stdout
    child = psutil.Process(int(parent.stdout.readline()))
    folder = Path(child.cwd())
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    child.wait(timeout=10)
    assert not child.is_running()
    for file in folder.iterdir():  # what only a parent that lives can remove
        file.unlink()
    folder.rmdir()


def test_a_taken_port_is_told(server: RedisServer, tmp_path: Path) -> None:
    second = RedisServer(port=server.port, parent=tmp_path)
    with pytest.raises(StartError, match=f"did not start on port {server.port}"):
        second.start()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_program_is_told(tmp_path: Path) -> None:
    missing = RedisServer(port=free_port(HOST), program=str(tmp_path / "redis-server"), parent=tmp_path)
    with pytest.raises(StartError, match="install Redis"):
        missing.start()
    assert not list(tmp_path.iterdir())
