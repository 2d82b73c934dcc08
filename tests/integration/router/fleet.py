"""A deployment of light replicas, and what a test does with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import ray
from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.handle import DeploymentHandle, DeploymentResponse

from router.request_router import SchemaRouter
from tests.e2e.service import wait_for
from tests.integration.router.light_replica import Light, LightCall, new_gate

REPLICAS = 4
KEYS = [f"{number:064x}" for number in range(40)]
Deploy = Callable[..., "Fleet"]
CHECK_S = 1.0
"""So often Ray Serve looks whether a replica lives."""


def routed(router: type[SchemaRouter] = SchemaRouter, limits: Mapping[str, float] | None = None) -> RequestRouterConfig:
    return RequestRouterConfig.model_validate(
        {
            "request_router_class": f"{router.__module__}.{router.__qualname__}",
            "request_router_kwargs": dict(limits or {}),
            "request_routing_stats_period_s": 0.2,
        }
    )


def router_of(handle: DeploymentHandle[Any]) -> SchemaRouter:
    """That of this process."""
    router = handle._router._asyncio_router.request_router  # type: ignore[union-attr]
    assert isinstance(router, SchemaRouter)
    return router


class Fleet:
    """A deployment of light replicas behind the router of this process."""

    def __init__(self, handle: DeploymentHandle[Any], gate: Any) -> None:
        self.gate = gate
        self._handle = handle

    @property
    def router(self) -> SchemaRouter:
        return router_of(self._handle)

    @property
    def reporting(self) -> set[str]:
        """The replicas that have told the router of their load."""
        return {name for name, known in self.router.dispatcher._board._replicas.items() if known.taken_at is not None}

    def send(self, key: str = "", call: LightCall | None = None) -> DeploymentResponse[Any]:
        return cast(DeploymentResponse[Any], self._handle.options(session_id=key).answer.remote(call or LightCall()))

    def homes(self, keys: list[str]) -> dict[str, str]:
        """Which replica answers for each key, asked one after the other."""
        return {key: self.send(key).result(timeout_s=60) for key in keys}

    def hold(self, count: int) -> list[DeploymentResponse[Any]]:
        """So many calls without a key that are with their replicas, and stay there."""
        calls = [self.send(call=LightCall(f"held {number}", held=True)) for number in range(count)]
        ray.get(self.gate.arrived.remote(count), timeout=60)
        return calls

    def settle(self, left: int = 0) -> None:
        """Waits until the router has no more to do than `left` calls that are under way."""
        router = self.router
        wait_for(lambda: len(router.dispatcher) == left, 30, f"{left} calls to be left, not {len(router.dispatcher)}")
        assert sum(map(len, router._sent.values())) == left
        assert not router._tickets
        assert not len(router._waiting_room)

    def process(self, key: str) -> tuple[str, int]:
        """The replica that answers for a key, and its process."""
        found: tuple[str, int] = self._handle.options(session_id=key).process.remote().result(timeout_s=60)
        return found


@contextmanager
def deployments(prefix: str) -> Iterator[Deploy]:
    """Deploys fleets of its own names: of one that had the same name before, Ray Serve may still tell the configuration."""
    deployed: dict[str, Fleet] = {}

    def run(
        light: type[Light] = Light,
        replicas: int = REPLICAS,
        router: type[SchemaRouter] = SchemaRouter,
        starts: int = 1000,
        limits: Mapping[str, float] | None = None,
        max_ongoing_requests: int = 100,
        **options: Any,
    ) -> Fleet:
        gate, name = new_gate(starts), f"{prefix}-{len(deployed)}"
        deployment = serve.deployment(
            name="light",
            num_replicas=replicas,
            ray_actor_options={"num_cpus": 0},
            request_router_config=routed(router, limits),
            max_ongoing_requests=max_ongoing_requests,
            graceful_shutdown_wait_loop_s=0.1,
            health_check_period_s=CHECK_S,
            **options,
        )(light)
        fleet = deployed[name] = Fleet(serve.run(deployment.bind(gate), name=name, route_prefix=None), gate)
        fleet.send().result(timeout_s=60)
        wait_for(lambda: len(fleet.router.dispatcher.fleet) == replicas, 30, "the router to know all replicas")
        return fleet

    yield run
    for name, fleet in deployed.items():
        ray.get(fleet.gate.open.remote())
        fleet.settle()
        delete(name)


def delete(application: str) -> None:
    """Nobody waits for its end."""
    serve.delete(application, _blocking=False)
