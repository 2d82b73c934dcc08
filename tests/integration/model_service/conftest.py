"""Engines that are shared by the tests here that need none of their own, and ended after them: what comes later needs the memory."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.integration.model_service.masks.mask_requests import await_masks
from tests.integration.model_service.running_broadcaster import RunningBroadcaster, running_broadcaster
from tests.integration.model_service.running_engine import RunningEngine, running_engine

NGRAMS = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4, "prompt_lookup_min": 1}


@pytest.fixture(scope="package")
def jumping() -> Iterator[RunningEngine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture(scope="package")
def stepping() -> Iterator[RunningEngine]:
    """It does not jump, and counts the different rows of each step."""
    with running_engine(jump_forward=False, count_mask_rows=True) as engine:
        yield engine


@pytest.fixture(scope="package")
def drafting() -> Iterator[tuple[RunningEngine, RunningBroadcaster]]:
    """With drafts, and masks from the broadcaster, which it has found."""
    name = f"maskcast-drafts-test-{uuid4().hex}"
    with running_broadcaster(name) as broadcaster, running_engine(mask_socket=name, engine_args={"speculative_config": NGRAMS}) as engine:
        await_masks(engine)
        yield engine, broadcaster
