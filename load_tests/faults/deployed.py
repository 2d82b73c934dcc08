"""The application on two nodes, deployed as an operator would: `serve deploy` of a file."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import psutil
import yaml

from deployments.access.key_file import entry_text, new_key
from deployments.local.ports import free_port
from deployments.local.redis_server import RedisServer
from deployments.names import APPLICATION, INGRESS
from load_tests.errors import BenchFailed
from load_tests.faults.ray_nodes import HERE, RayNodes
from load_tests.faults.waiting import wait_for

START_S = 180.0
"""Ray's dashboard imports Ray Serve when it is first asked; beside other work that can take a minute."""


@dataclass(frozen=True)
class Replica:
    id: str
    deployment: str
    state: str
    node: str
    pid: int


class Deployed:
    """Two nodes and what they serve. `lasting` is the node that stays, `other` the one that is taken away."""

    def __init__(self, nodes: RayNodes, redis: RedisServer, config: Mapping[str, Any], cpus: float, labels: Mapping[str, str]) -> None:
        """`config` is a Serve configuration; each node has so many CPUs, and these labels."""
        self.nodes = nodes
        self.lasting, self.other = "first", ""
        self._config = deepcopy(dict(config))
        self.args: dict[str, Any] = self._config["applications"][0]["args"]
        self._key = new_key()
        self._cut = cpus, labels
        self._numbers = count(2)
        self._stand_here(redis)

    def _stand_here(self, redis: RedisServer) -> None:
        """What a cluster mounts and resolves; and the kernel, which spreads the clients here, needs no time to notice who leaves."""
        keys, settings = self.nodes.folder / "keys.yaml", self.nodes.folder / "settings.yaml"
        keys.write_text(entry_text(self._key, "tester", ["generate"], 1.0))
        settings.write_text(yaml.safe_dump({"artifact_secret": "s" * 32, "redis": {"password": redis.password.get_secret_value()}}))
        self.args["secrets_file"] = str(settings)
        self.args["redis"]["url"] = redis.url
        self.args["http"].update(host=HERE, port=free_port(HERE), api_keys_file=str(keys), leave_s=1)

    @property
    def port(self) -> int:
        port: int = self.args["http"]["port"]
        return port

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}

    def start(self) -> None:
        self.nodes.add(self.lasting, *self._cut)
        self.add()
        wait_for(lambda: self.nodes.serve()["applications"] == {}, START_S, "Ray's dashboard")
        self.deploy()

    def add(self) -> None:
        """Another node beside the one that stays, or in the place of one that has gone."""
        self.other = f"node-{next(self._numbers)}"
        self.nodes.add(self.other, *self._cut)

    def deploy(self) -> None:
        file = self.nodes.folder / "serve.yaml"
        file.write_text(yaml.safe_dump(self._config))
        self.nodes.deploy(file)

    def replicas(self) -> list[Replica]:
        deployments = self.nodes.serve()["applications"][APPLICATION]["deployments"]
        return [
            Replica(each["replica_id"], name, each["state"], each.get("node_id") or "", each.get("pid") or 0)
            for name, deployment in deployments.items()
            for each in deployment["replicas"]
        ]

    def on(self, node: str) -> list[Replica]:
        """The replicas on the node of that name."""
        wanted = self.nodes.node_id(node)
        return [each for each in self.replicas() if each.node == wanted]

    def wait_until_settled(self, seconds: float, without: frozenset[str] = frozenset()) -> None:
        """Until each deployment has what it wants, and none of the replicas `without`."""

        def is_settled() -> bool:
            running = {each.id for each in self.replicas() if each.state == "RUNNING"}
            is_running = self.nodes.serve()["applications"][APPLICATION]["status"] == "RUNNING"
            return is_running and not running & without and self.ready()["status"] == "ready"

        try:
            wait_for(is_settled, seconds, "the application to be as it is wanted")
        except BenchFailed as error:
            raise BenchFailed(f"{error}\n{self.replicas()}\n{self.nodes.logs()}") from error

    def ready(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"http://{HERE}:{self.port}/readyz", timeout=30).json()
        return found

    def ask(self, **fields: Any) -> httpx.Response:
        body = {"messages": [{"role": "user", "content": "Say something."}], **fields}
        return httpx.post(f"http://{HERE}:{self.port}/v1/chat/completions", json=body, headers=self.headers, timeout=120)

    def door(self, node: str) -> psutil.Process:
        """The ingress on that node. Ray Serve lists one that was killed for a while beside the one in its place."""

        def alive() -> list[int]:
            return [each.pid for each in self.on(node) if each.deployment == INGRESS and psutil.pid_exists(each.pid)]

        wait_for(lambda: len(alive()) == 1, START_S, f"one ingress on {node}")
        return psutil.Process(alive()[0])
