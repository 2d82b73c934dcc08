from __future__ import annotations

from collections.abc import Iterator

import pytest
import ray

from tests.integration.router.fleet import Deploy, Fleet, deployments


@pytest.fixture
def deploy(request: pytest.FixtureRequest) -> Iterator[Deploy]:
    """Deploys light replicas, which are gone after the test."""
    with deployments(request.node.name) as deploy:
        yield deploy


@pytest.fixture(scope="package")
def shared_fleet(ray_serve: None) -> Iterator[Fleet]:
    with deployments("shared") as deploy:
        yield deploy()


@pytest.fixture
def fleet(shared_fleet: Fleet) -> Fleet:
    """One for all tests that leave its replicas as they are; its gate is closed."""
    shared_fleet.settle()
    ray.get(shared_fleet.gate.close.remote())
    return shared_fleet
