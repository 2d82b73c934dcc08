from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ray import serve
from ray.serve.handle import DeploymentHandle

from deployments.app import compile_pool
from deployments.config import Settings, parse_settings
from tests.integration.grammar_service.redis_process import PASSWORD, RedisProcess, redis_process

REPLICAS = 3


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with redis_process(tmp_path_factory.mktemp("redis")) as process:
        yield process


@pytest.fixture(scope="module")
def settings(redis_server: RedisProcess) -> Settings:
    return parse_settings(
        {
            "grammar": {"compile_replicas": REPLICAS, "compile_workers": 1},
            "redis": {"url": redis_server.url, "password": PASSWORD, "timeout_ms": 1000, "head_start_ms": 1000},
            "artifact_secret": "a secret of at least 32 characters",
        }
    )


@pytest.fixture(scope="module")
def pool_handle(ray_serve: None, settings: Settings) -> Iterator[DeploymentHandle[Any]]:
    """The compile pool alone."""
    yield serve.run(compile_pool(settings), name="pool with Redis", route_prefix=None)
    serve.delete("pool with Redis", _blocking=False)
