"""A real redis-server for one test: on a free port, with a password, in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from deployments.local.ports import free_port
from tests.waiting import until

HOST = "127.0.0.1"
PASSWORD = "correct horse"


class RedisProcess:
    def __init__(self, folder: Path, *arguments: str) -> None:
        self.port = free_port(HOST)
        self._process = subprocess.Popen(
            [
                "redis-server",
                "--port",
                str(self.port),
                "--bind",
                HOST,
                "--requirepass",
                PASSWORD,
                "--dir",
                str(folder),
                "--save",
                "",
                *arguments,
            ],
            stdout=subprocess.DEVNULL,
        )
        self.client = redis.Redis(port=self.port, password=PASSWORD, socket_timeout=5)
        self._wait_until_it_answers()

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.client.close()

    def _wait_until_it_answers(self) -> None:
        until(self._answers)

    def _answers(self) -> bool:
        assert self._process.poll() is None
        try:
            self.client.ping()
        except redis.ConnectionError:
            return False
        return True


@contextmanager
def redis_process(folder: Path) -> Iterator[RedisProcess]:
    server = RedisProcess(folder)
    try:
        yield server
    finally:
        server.kill()
