"""A Redis server of our own, for one machine: own port, own folder, a password; gone when it is stopped or its parent dies."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

import redis
from pydantic import SecretStr

from deployments.errors import StartError
from deployments.local.ports import free_port
from deployments.local.processes import die_with_parent

HOST = "127.0.0.1"
START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0
POLL_S = 0.02
PORT_TRIES = 3

CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
dir {folder}
logfile {folder}/redis.log
daemonize no
save ""
appendonly no
maxmemory {max_memory_mib}mb
maxmemory-policy volatile-lru
"""


class RedisServer:
    """Keeps nothing on disk: it holds a cache, and the least recently used entries go first; named grammars, which do not expire, stay.

    The port and the password stay the same when it is stopped and started again. Start it in a thread that lives as long as
    the server shall: the kernel ends the server with the thread that started it.
    """

    def __init__(
        self, port: int | None = None, program: str = "redis-server", max_memory_mib: int = 256, parent: Path | None = None
    ) -> None:
        """`parent` is where its folder is made, the system's temporary folder by default."""
        self.password = SecretStr(secrets.token_urlsafe(24))
        self._wanted_port = port
        self._port = port
        self._program = program
        self._max_memory_mib = max_memory_mib
        self._parent = parent
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        if self._port is None:
            raise RuntimeError("the server has no port before its first start")
        return self._port

    @property
    def url(self) -> str:
        """Without the password."""
        return f"redis://{HOST}:{self.port}/0"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """The process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns when the server answers.

        Raises:
            StartError: there is no such program, the port is taken, or the server does not come up.
        """
        if self._process is not None:
            raise RuntimeError("the server is running")
        for tries_left in reversed(range(PORT_TRIES)):
            self._port = self._port or free_port(HOST)
            try:
                self._launch(self._port)
                self._wanted_port = self._port  # from now on others know it
                return
            except StartError:
                self.stop()
                # Between asking for a free port and using it, another process may have taken it.
                if not tries_left or self._wanted_port is not None:
                    raise
                self._port = None

    def stop(self) -> None:
        """Returns when the process and its folder are gone; does nothing when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _launch(self, port: int) -> None:
        folder = self._folder = Path(tempfile.mkdtemp(prefix="maskcast-redis-", dir=self._parent))
        configuration = self._write_configuration(folder, port)
        try:
            # A session of its own, so that Ctrl-C in the terminal reaches us, and we end it in order.
            self._process = subprocess.Popen(
                [self._program, str(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509  # one prctl call, bound before the fork
            )
        except OSError as error:
            raise StartError(f"{self._program} cannot be run ({error.strerror}): install Redis, or set redis.url") from error
        self._await_answer(self._process, port, folder)

    def _write_configuration(self, folder: Path, port: int) -> Path:
        # In a file that only we can read: anybody can read a command line.
        path = folder / "redis.conf"
        path.touch(mode=0o600)
        text = CONFIGURATION.format(
            host=HOST, port=port, password=self.password.get_secret_value(), folder=folder, max_memory_mib=self._max_memory_mib
        )
        path.write_text(text, encoding="utf-8")
        return path

    def _await_answer(self, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        with redis.Redis(HOST, port, password=self.password.get_secret_value(), socket_timeout=1.0) as client:
            while process.poll() is None and time.monotonic() < deadline:
                try:
                    client.ping()
                    return
                except redis.RedisError:
                    time.sleep(POLL_S)
        raise StartError(f"Redis did not start on port {port}: {_last_line(folder / 'redis.log')}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:  # it may have been suspended
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote no log")
