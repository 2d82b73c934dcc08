from __future__ import annotations

import pytest

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
