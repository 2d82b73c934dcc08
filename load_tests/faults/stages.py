"""The clusters that are struck: each is begun for its strikes alone, and some cannot be had everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from deployments.config import Settings
from deployments.local.environment import defaults
from deployments.local.redis_server import RedisServer
from load_tests.faults import clocks, log_disk
from load_tests.faults.deployed import Deployed
from load_tests.faults.ray_nodes import RayNodes
from load_tests.faults.strikes import CLOCKS, FULL_DISK, HANGING, TWO_WORKERS, USUAL, Strike
from load_tests.reporting.running_service import ONE_THREAD

OVERLAY = Path(__file__).parents[2] / "k8s" / "overlays" / "cpu-dev" / "serve.yaml"
LABELS, CPUS = {"maskcast-role": "front"}, 2.0
"""Of its pods."""


@dataclass(frozen=True)
class Stage:
    """Strikes, and the cluster for them: its `model` settings, whether logs have `log_disks` and nodes `own_clocks`. `why_not` it cannot
    be had here, if it cannot."""

    strikes: Sequence[Strike]
    model: Mapping[str, Any] = field(default_factory=dict)
    log_disks: bool = False
    own_clocks: bool = False
    why_not: str = ""

    def of(self, only: str) -> Stage:
        """With those strikes alone whose name has one of these in it, with commas between."""
        return replace(self, strikes=[each for each in self.strikes if any(text in each.name for text in only.split(","))])

    @contextmanager
    def begun(self) -> Iterator[tuple[Deployed, RedisServer]]:
        """The application of the overlay, with a broadcaster so that there is one to be struck, on two nodes and their Redis."""
        pods = {**defaults(Settings(), Path.home()), **ONE_THREAD}
        with (
            RedisServer() as state,
            RayNodes(pods, state, self.log_disks, self.own_clocks) as nodes,
            RedisServer(parent=nodes.folder) as redis,
        ):
            deployed = Deployed(nodes, redis, yaml.safe_load(OVERLAY.read_text(encoding="utf-8")), CPUS, LABELS)
            deployed.args["model"].update({"masks": "broadcaster", **self.model})
            deployed.start()
            yield deployed, redis


def stages() -> list[Stage]:
    """All of them."""
    return [
        Stage((*USUAL, *HANGING)),
        Stage([FULL_DISK], log_disks=True, why_not=log_disk.why_not()),
        Stage(CLOCKS, own_clocks=True, why_not=clocks.why_not()),
        Stage(TWO_WORKERS, {"tensor_parallel_size": 2, "cpus_per_worker": 0.75}),
    ]
