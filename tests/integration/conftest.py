from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.grammar_service.redis_process import RedisProcess, redis_process
from tests.tiny_tokenizer import save_tiny_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisProcess]:
    with redis_process(tmp_path) as server:
        yield server
