"""One engine that jumps and one that does not, shared by the tests that need no engine of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.model_service.running_engine import RunningEngine, running_engine


@pytest.fixture(scope="session")
def jumping() -> Iterator[RunningEngine]:
    with running_engine(jump_forward=True) as engine:
        yield engine


@pytest.fixture(scope="session")
def stepping() -> Iterator[RunningEngine]:
    with running_engine(jump_forward=False) as engine:
        yield engine
