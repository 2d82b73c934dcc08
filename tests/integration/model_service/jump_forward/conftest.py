"""All ways to jump: each test with `jumper` is of each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.model_service.running_engine import RunningEngine, running_engine


@pytest.fixture(scope="package")
def overlapping() -> Iterator[RunningEngine]:
    """It schedules a step while the one ahead of it is under way."""
    with running_engine(jump_forward="async") as engine:
        yield engine


@pytest.fixture(scope="package")
def looking_up() -> Iterator[RunningEngine]:
    """It drafts what the prompt makes likely."""
    with running_engine(prompt_lookup=True) as engine:
        yield engine


@pytest.fixture(scope="package", params=["jumping", "overlapping", "looking_up"])
def jumper(request: pytest.FixtureRequest) -> RunningEngine:
    engine: RunningEngine = request.getfixturevalue(request.param)
    return engine
