"""What is done to a cluster under load, and what Kubernetes would then do by itself."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event

import psutil

from deployments.local.redis_server import RedisServer
from deployments.names import APPLICATION, COMPILER, INGRESS, MODEL
from load_tests.errors import BenchFailed
from load_tests.faults import ray_state
from load_tests.faults.clients import is_up
from load_tests.faults.deployed import Deployed
from load_tests.faults.ray_nodes import HEAD
from load_tests.faults.waiting import wait_for

AWAY_S, SUSPENDED_S = 30.0, 10.0
HOUR_S = 3600
ENDS_S = 60.0
OWN_WATCH_S, RAY_CHECKS_S = 60.0, 120.0
"""Of a watch of the service, twice what it waits for; of Ray Serve's health checks, three in a row of half a minute."""
Act = Callable[[Deployed, RedisServer], None]


@dataclass(frozen=True)
class Kind:
    """A kind of process: what its command line has in it. One that is `forked` is below another one of the same mark."""

    name: str
    mark: str
    on_head: bool = False
    forked: bool = False


@dataclass(frozen=True)
class Strike:
    """`replaced_s`: how long it may take the service to find out what was done; it tells a process that hangs from a slow one by what
    happens in that time."""

    name: str
    act: Act
    replaced_s: float = 0.0


REPLICA = f"ServeReplica:{APPLICATION}"
INGRESSES = Kind("an ingress", f"{REPLICA}:{INGRESS}")
MODELS = Kind("a model replica", f"{REPLICA}:{MODEL}")
COMPILERS = Kind("a compile replica", f"{REPLICA}:{COMPILER}")
CORES = Kind("an engine core", "VLLM::EngineCore")
FORK_SERVERS = Kind("what engine cores are forked from", "multiprocessing.forkserver")
ZYGOTES = Kind("a compile zygote", "grammar_service.sandbox.zygote")
CHILDREN = Kind("a compile child", "grammar_service.sandbox.zygote", forked=True)
BROADCASTERS = Kind("a mask broadcaster", "ray::BroadcasterActor")
CONTROLLER = Kind("Ray Serve's controller", "ServeController", on_head=True)
GCS = Kind("Ray's GCS", "gcs/gcs_server", on_head=True)
WORKERS = Kind("a worker of two", "VLLM::Worker")
RAYLETS = Kind("a raylet", "raylet/raylet")


def victim(deployed: Deployed, kind: Kind) -> psutil.Process:
    """On the node that is not spared, or where it has none, on the other one.

    Raises:
        BenchFailed: there is no such process.
    """
    for node in (HEAD,) if kind.on_head else (deployed.other, deployed.lasting):
        for process in deployed.nodes.processes(node, kind.mark):
            above = process.parent()
            if kind.forked == (above is not None and kind.mark in " ".join(above.cmdline())):
                return process
    raise BenchFailed(f"there is no process of {kind.name}")


def _kill(kind: Kind) -> Strike:
    return Strike(f"{kind.name} is killed", lambda deployed, _: victim(deployed, kind).kill())


def _suspend(kind: Kind) -> Strike:
    return Strike(f"{kind.name} hangs for {SUSPENDED_S:g} s", lambda deployed, _: _hang([victim(deployed, kind)]))


def _suspend_for_good(kind: Kind, replaced_s: float) -> Strike:
    """Until somebody ends it."""

    def act(deployed: Deployed, _: RedisServer) -> None:
        process = victim(deployed, kind)
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: not is_up(process), replaced_s, f"{kind.name} that hangs to be replaced")

    return Strike(f"{kind.name} hangs until it is replaced", act, replaced_s)


def _hang(processes: list[psutil.Process]) -> None:
    for each in processes:
        each.send_signal(signal.SIGSTOP)
    Event().wait(SUSPENDED_S)
    for each in processes:
        if is_up(each):
            each.send_signal(signal.SIGCONT)


def _suspend_family(deployed: Deployed, _: RedisServer) -> None:
    process = victim(deployed, MODELS)
    _hang([process, *process.children(recursive=True)])


def _kill_gcs(deployed: Deployed, _: RedisServer) -> None:
    """The head's container ends with it, and is started again."""
    victim(deployed, GCS).kill()
    wait_for(partial(deployed.nodes.has_ended, HEAD), ENDS_S, "the head to end")
    deployed.nodes.begin_head()


def _kill_node(deployed: Deployed, _: RedisServer) -> None:
    """The pod's container ends with its raylet, and another pod takes its place."""
    deployed.nodes.kill(deployed.other)
    wait_for(partial(deployed.nodes.has_ended, deployed.other), ENDS_S, "the node to end")
    deployed.add()


def _redis_away(_: Deployed, redis: RedisServer) -> None:
    psutil.Process(redis.pid).kill()
    redis.stop()
    Event().wait(AWAY_S)
    redis.start()


def _ray_redis_away(deployed: Deployed, _: RedisServer) -> None:
    """Ray's GCS gives up without it, and its head's container is started again when it is back with what it wrote."""
    if (state := deployed.nodes.state) is None:
        raise BenchFailed("Ray keeps nothing in a Redis")
    held = ray_state.kill(state)
    wait_for(partial(deployed.nodes.has_ended, HEAD), ENDS_S, "the head to end")
    Event().wait(AWAY_S)
    ray_state.start_again(state, held)
    deployed.nodes.begin_head()


def _ray_redis_hangs(deployed: Deployed, _: RedisServer) -> None:
    if (state := deployed.nodes.state) is None:
        raise BenchFailed("Ray keeps nothing in a Redis")
    _hang([psutil.Process(state.pid)])


def _fill_logs(deployed: Deployed, _: RedisServer) -> None:
    with deployed.nodes.full_logs(deployed.other):
        Event().wait(SUSPENDED_S)


def _set_clock(deployed: Deployed, node: str) -> None:
    """Ahead, then behind, then right."""
    if (clocks := deployed.nodes.clocks) is None:
        raise BenchFailed("the nodes have no clocks of their own")
    for by_s in (HOUR_S, -HOUR_S, 0):
        clocks.set(node, by_s)
        Event().wait(SUSPENDED_S)


USUAL = (
    *map(_kill, (INGRESSES, MODELS, CORES, FORK_SERVERS, COMPILERS, ZYGOTES, CHILDREN, BROADCASTERS, CONTROLLER)),
    Strike(f"Redis is killed, and away for {AWAY_S:g} s", _redis_away),
    *map(_suspend, (INGRESSES, MODELS, CORES, FORK_SERVERS, COMPILERS, ZYGOTES, CHILDREN, BROADCASTERS, CONTROLLER, GCS, RAYLETS)),
    Strike(f"a model replica and its engine hang for {SUSPENDED_S:g} s", _suspend_family),
    Strike(f"Redis hangs for {SUSPENDED_S:g} s", lambda _, redis: _hang([psutil.Process(redis.pid)])),
    Strike("a node's raylet is killed, and another node joins", _kill_node),
    Strike("Ray's GCS is killed, and its head started again", _kill_gcs),
    Strike(f"Ray's own Redis hangs for {SUSPENDED_S:g} s", _ray_redis_hangs),
    Strike(f"Ray's own Redis is killed, and away for {AWAY_S:g} s", _ray_redis_away),
)
HANGING = (
    _suspend_for_good(CORES, OWN_WATCH_S),
    _suspend_for_good(BROADCASTERS, OWN_WATCH_S),
    *(_suspend_for_good(kind, RAY_CHECKS_S) for kind in (INGRESSES, MODELS)),
)
FULL_DISK = Strike(f"the disk of a node's logs is full for {SUSPENDED_S:g} s", _fill_logs)
CLOCKS = (
    Strike("a node's clock is set an hour ahead, and an hour behind", lambda deployed, _: _set_clock(deployed, deployed.other)),
    Strike("the head's clock is set an hour ahead, and an hour behind", lambda deployed, _: _set_clock(deployed, HEAD)),
)
TWO_WORKERS = (_kill(WORKERS), _suspend(WORKERS), _suspend_for_good(WORKERS, OWN_WATCH_S))
STRIKES = (*USUAL, *HANGING, FULL_DISK, *CLOCKS, *TWO_WORKERS)
