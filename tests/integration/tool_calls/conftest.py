from __future__ import annotations

import pytest
from transformers import PreTrainedTokenizerFast

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.frontend.patched_parsers import patch_parsers


@pytest.fixture(scope="session", autouse=True)
def _patched() -> None:
    """vLLM's parsers as engines have them."""
    patch_parsers()


@pytest.fixture(scope="module")
def vocabulary(marked: PreTrainedTokenizerFast) -> GrammarTokenizer:
    """Of the tokenizer with marks that each module has."""
    return GrammarTokenizer.from_huggingface(marked)
