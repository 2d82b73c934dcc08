from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from grammar_service.tokenizer import GrammarTokenizer
from tests.integration.grammar_service.redis_process import RedisProcess, redis_process
from tests.tiny_tokenizer import VOCAB_SIZE, save_tiny_model, tiny_tokenizer


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisProcess]:
    with redis_process(tmp_path) as server:
        yield server


@pytest.fixture(autouse=True, scope="module")
def no_child_outlives_the_module() -> Iterator[None]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.fixture(scope="session")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
