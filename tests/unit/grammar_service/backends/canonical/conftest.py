from __future__ import annotations

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.vocabulary.tokenizer import GrammarTokenizer


@pytest.fixture(scope="package")
def embedded() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)
