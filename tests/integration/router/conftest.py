from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployments.local.environment import environment
from deployments.local.own_ray import own_serve
from tests.integration.router.fleet import Deploy, deployments


@pytest.fixture(scope="package")
def ray_serve() -> Iterator[None]:
    """A Ray of its own for the tests here."""
    with environment({"RAY_USAGE_STATS_ENABLED": "0"}, {}), own_serve():
        yield


@pytest.fixture
def deploy(request: pytest.FixtureRequest) -> Iterator[Deploy]:
    """Deploys light replicas, which are gone after the test."""
    with deployments(request.node.name) as deploy:
        yield deploy
