from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployments.environment import environment
from deployments.own_ray import own_ray


@pytest.fixture(scope="package")
def ray_serve() -> Iterator[None]:
    """A Ray of its own for the tests here."""
    with environment({"RAY_USAGE_STATS_ENABLED": "0"}, {}), own_ray():
        yield
