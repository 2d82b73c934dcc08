"""What is done to a cluster under load, and what Kubernetes would then do by itself."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

import psutil

from deployments.local.redis_server import RedisServer
from deployments.names import COMPILER, INGRESS, MODEL
from load_tests.errors import BenchFailed
from load_tests.faults.deployed import Deployed
from load_tests.faults.waiting import wait_for

AWAY_S, SUSPENDED_S = 30.0, 10.0


@dataclass(frozen=True)
class Strike:
    """`ends_connections`: clients' connections are among what is struck, and end with it."""

    name: str
    act: Callable[[Deployed, RedisServer], None]
    ends_connections: bool = False


def _kill(deployment: str) -> Callable[[Deployed, RedisServer], None]:
    return lambda deployed, _: _process(deployed, deployment).kill()


def _kill_below(deployment: str, mark: str) -> Callable[[Deployed, RedisServer], None]:
    """The processes below a replica whose name or command line has the mark."""

    def act(deployed: Deployed, _: RedisServer) -> None:
        below = _process(deployed, deployment).children(recursive=True)
        victims = [each for each in below if mark in " ".join([each.name(), *each.cmdline()])]
        if not victims:
            raise BenchFailed(f"no {mark} below {deployment}")
        for victim in victims:
            victim.kill()

    return act


def _suspend(deployment: str) -> Callable[[Deployed, RedisServer], None]:
    """With all below it, for a while."""

    def act(deployed: Deployed, _: RedisServer) -> None:
        process = _process(deployed, deployment)
        family = [process, *process.children(recursive=True)]
        for each in family:
            each.send_signal(signal.SIGSTOP)
        Event().wait(SUSPENDED_S)
        for each in family:
            if each.is_running():
                each.send_signal(signal.SIGCONT)

    return act


def _kill_controller(deployed: Deployed, _: RedisServer) -> None:
    psutil.Process(deployed.nodes.serve()["controller_info"]["pid"]).kill()


def _kill_gcs(deployed: Deployed, _: RedisServer) -> None:
    """The head's container ends with it, and is started again."""
    deployed.nodes.kill_gcs()
    wait_for(lambda: deployed.nodes.has_ended("head"), 60, "the head to end")
    deployed.nodes.begin_head()


def _kill_node(deployed: Deployed, _: RedisServer) -> None:
    """The pod's container ends with its raylet, and another pod takes its place."""
    deployed.nodes.kill(deployed.other)
    wait_for(lambda: deployed.nodes.has_ended(deployed.other), 60, "the node to end")
    deployed.add()


def _redis_away(_: Deployed, redis: RedisServer) -> None:
    redis.stop()
    Event().wait(AWAY_S)
    redis.start()


def _process(deployed: Deployed, deployment: str) -> psutil.Process:
    """Of a replica on the node that is not spared, or where it has none, on the other one."""
    found = [each for node in (deployed.other, deployed.lasting) for each in deployed.on(node)]
    return psutil.Process(next(each.pid for each in found if each.deployment == deployment and each.state == "RUNNING"))


STRIKES = (
    Strike("an ingress is killed", _kill(INGRESS), ends_connections=True),
    Strike("a model replica is killed", _kill(MODEL)),
    Strike("an engine core is killed", _kill_below(MODEL, "VLLM::")),
    Strike("a compile replica is killed", _kill(COMPILER)),
    Strike("a compile zygote is killed", _kill_below(COMPILER, "grammar_service.sandbox.zygote")),
    Strike("Ray Serve's controller is killed", _kill_controller),
    Strike("Ray's GCS is killed, and its head started again", _kill_gcs),
    Strike(f"Redis is away for {AWAY_S:g} s", _redis_away),
    Strike(f"a model replica hangs for {SUSPENDED_S:g} s", _suspend(MODEL)),
    Strike("the second node's raylet is killed, and another node joins", _kill_node, ends_connections=True),
)
