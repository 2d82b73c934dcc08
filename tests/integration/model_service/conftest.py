"""One engine that jumps and one that does not, shared by the tests here that need no engine of their own, and ended after them: what comes
later needs the memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.model_service.running_engine import RunningEngine, running_engine


@pytest.fixture(scope="package")
def jumping() -> Iterator[RunningEngine]:
    with running_engine(jump_forward=True) as engine:
        yield engine


@pytest.fixture(scope="package")
def stepping() -> Iterator[RunningEngine]:
    with running_engine(jump_forward=False) as engine:
        yield engine
