"""A Ray cluster of several nodes on this machine, begun as KubeRay begins its pods: `ray start --block` in their environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import psutil

from deployments.local.local import LONGEST_TEMPORARY_FOLDER
from deployments.local.ports import free_port
from deployments.local.processes import ProcessTree, die_with_parent
from deployments.local.ray_access import CLUSTERS, TOKEN_PATH, RayAccess
from deployments.local.redis_server import RedisServer
from load_tests.errors import BenchFailed
from load_tests.faults.clocks import Clocks
from load_tests.faults.log_disk import filled, mounting
from load_tests.faults.waiting import wait_for

BIN = Path(sys.executable).parent
HERE = "127.0.0.1"
OBJECT_STORE = 100 * 2**20
HEAD = "head"
PATIENCE_S, BEGINS_S = 10.0, 60.0
HEAD_LABEL = "maskcast-role=head"
WITHOUT_HEAD = {"RAY_gcs_rpc_server_reconnect_timeout_s": "3600"}
"""How long nodes bear it, where the head may be lost; both as `k8s/base/rayservice.yaml` has them."""


class RayNodes:
    """Ends with all that it began. It never touches Ray in this process. Use it in the main thread: nodes end with the thread that began
    them."""

    def __init__(
        self, environment: Mapping[str, str], state: RedisServer | None = None, log_disks: bool = False, own_clocks: bool = False
    ) -> None:
        """`environment` is that of the pods. With `state`, Ray keeps there what it knows of the cluster, and the head may be lost. With
        `log_disks`, nodes beside the head log to a small disk of their own; with `own_clocks`, all have wall clocks of their own."""
        self.state = state
        self._log_disks = log_disks
        parent = tempfile.gettempdir()  # Ray opens sockets below it, whose paths must be short
        self.folder = Path(tempfile.mkdtemp(prefix="mc-", dir=parent if len(parent) <= LONGEST_TEMPORARY_FOLDER else "/tmp"))
        self.clocks = Clocks(self.folder) if own_clocks else None
        access = RayAccess(self.folder).make()
        del access[CLUSTERS]  # there is one here
        own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self._environment = {**own, **environment, **access, "TMPDIR": str(self.folder), "PATH": f"{BIN}:{os.environ['PATH']}"}
        self._port, self._dashboard = free_port(HERE), free_port(HERE)
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._tree = ProcessTree()

    def __enter__(self) -> RayNodes:
        self._tree.watch()
        self.begin_head()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self._nodes.values():
            process.terminate()
        self._tree.end(PATIENCE_S)
        for process in self._nodes.values():
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """Of commands that talk to the cluster."""
        return {**self._environment, "RAY_ADDRESS": f"{HERE}:{self._port}"}

    def begin_head(self) -> None:
        """For the first time, or again after it has ended."""
        # A container that is started again sees no other node's raylet; here the command would take one for a cluster that runs.
        (self.folder / HEAD / "ray_current_cluster").unlink(missing_ok=True)
        options = ["--head", f"--port={self._port}", f"--dashboard-port={self._dashboard}", "--num-cpus=0", f"--labels={HEAD_LABEL}"]
        if self.state is not None:
            options.append(f"--redis-password={self.state.password.get_secret_value()}")
        self._begin(HEAD, *options)

    def add(self, name: str, cpus: float, labels: Mapping[str, str]) -> None:
        named = ",".join(f"{label}={value}" for label, value in labels.items())
        self._begin(name, f"--address={HERE}:{self._port}", f"--num-cpus={cpus:g}", f"--labels={named}")

    def node_id(self, name: str) -> str:
        (found,) = [word.removeprefix("--node_id=") for word in self._raylet(name).cmdline() if word.startswith("--node_id=")]
        return found

    def kill(self, name: str) -> None:
        """SIGKILL to its raylet, as where its machine is lost."""
        self._raylet(name).kill()

    def processes(self, node: str, mark: str) -> list[psutil.Process]:
        """Those of the node whose command line has the mark."""
        found = []
        for process in psutil.Process(self._nodes[node].pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if mark in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def is_up(self, name: str) -> bool:
        """Whether it has its raylet; the node's command, with which a pod's container ends, outlives one that has ended in order."""
        try:
            return self._raylet(name).status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, ValueError):
            return False

    def has_ended(self, name: str) -> bool:
        """Whether the node's command has returned."""
        return self._nodes[name].poll() is not None

    def run(self, *command: str, within_s: float = 300) -> str:
        """A command of the environment, with its output. Raises BenchFailed: it failed."""
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]], env=self.environment, capture_output=True, text=True, timeout=within_s, check=False
        )
        if done.returncode:
            raise BenchFailed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextmanager
    def full_logs(self, name: str) -> Iterator[None]:
        """Nothing more can be written to the disk of that node's logs, until the end of the block."""
        with filled(self._logs(name), self._nodes[name].pid):
            yield

    def begin(self, *command: str) -> subprocess.Popen[str]:
        """The same, without waiting for it."""
        return subprocess.Popen(
            [str(BIN / command[0]), *command[1:]], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def deploy(self, file: Path) -> None:
        self.run("serve", "deploy", str(file), "--address", f"http://{HERE}:{self._dashboard}")

    def serve(self) -> dict[str, Any]:
        """What Ray Serve's controller tells of `applications`, and in `controller_info` of itself.

        Raises:
            httpx.HTTPError: there is no dashboard now, or no controller.
        """
        head = {"Authorization": f"Bearer {Path(self._environment[TOKEN_PATH]).read_text()}"}
        answer = httpx.get(f"http://{HERE}:{self._dashboard}/api/serve/applications/", headers=head, timeout=30)
        found: dict[str, Any] = answer.raise_for_status().json()
        return found

    def logs(self) -> str:
        """The last lines of what the nodes' commands and Ray Serve's controller wrote."""
        files = [*self.folder.glob("*.log"), *(self.folder / HEAD / "session_latest" / "logs" / "serve").glob("*.log")]
        return "\n".join(f"== {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-15:]) for file in files)

    def _raylet(self, name: str) -> psutil.Process:
        return self._process(name, "raylet")

    def _process(self, node: str, program: str) -> psutil.Process:
        (found,) = [child for child in psutil.Process(self._nodes[node].pid).children(recursive=True) if child.name() == program]
        return found

    def _begin(self, name: str, *options: str) -> None:
        # Nodes of their own machines would not have to be kept apart.
        agent, metrics = free_port(HERE), free_port(HERE)
        own = [f"--dashboard-agent-listen-port={agent}", f"--metrics-export-port={metrics}", "--min-worker-port=0", "--max-worker-port=0"]
        place = [f"--temp-dir={self.folder / name}", f"--object-store-memory={OBJECT_STORE}"]
        command = [str(BIN / "ray"), "start", "--block", "--disable-usage-stats", *place, *own, *options]
        environment = {**self._environment, **self._kept(name)}
        if self.clocks is not None:
            environment |= self.clocks.environment(name)
        if self._log_disks and name != HEAD:
            self._logs(name).mkdir(parents=True, exist_ok=True)
            command = [*mounting(self._logs(name)), *command]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._nodes[name] = subprocess.Popen(
                command,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(),  # noqa: PLW1509  # one prctl call, bound before the fork
            )

    def _logs(self, name: str) -> Path:
        """Sessions of Ray have one name on all nodes, which the head chooses."""
        session = self.folder / HEAD / "session_latest"
        wait_for(session.is_symlink, BEGINS_S, "Ray's session")
        return self.folder / name / session.readlink().name / "logs"

    def _kept(self, node: str) -> Mapping[str, str]:
        if self.state is None:
            return {}
        if node != HEAD:
            return WITHOUT_HEAD
        return {"RAY_REDIS_ADDRESS": f"redis://{HERE}:{self.state.port}", "RAY_external_storage_namespace": "maskcast"}
