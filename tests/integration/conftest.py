from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.config import Settings
from deployments.local.environment import defaults, environment
from deployments.local.own_ray import own_serve
from tests.integration.grammar_service.redis_process import RedisProcess, redis_process
from tests.tokenizers.tiny_tokenizer import save_tiny_model

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Ray come one after the other, last of those here: one Ray serves them all, and the others have the machine."""
    places = [place for place, item in enumerate(items) if HERE in item.path.parents]
    ordered = sorted((items[place] for place in places), key=lambda item: "ray_serve" in getattr(item, "fixturenames", ()))
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="package")
def ray_serve() -> Iterator[None]:
    """A Ray with Serve, which believes in four GPUs; who deploys something takes it away again."""
    with environment(defaults(Settings(), Path.home()), {}), own_serve(gpus=4):
        yield


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisProcess]:
    with redis_process(tmp_path) as server:
        yield server
