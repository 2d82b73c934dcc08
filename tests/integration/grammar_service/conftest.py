from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer


@pytest.fixture(autouse=True, scope="module")
def no_child_outlives_the_module() -> Iterator[None]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.fixture(scope="session")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
