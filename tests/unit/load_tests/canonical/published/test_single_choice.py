"""Counting the tokens that leave nothing to choose."""

from __future__ import annotations

import json

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import CompiledGrammar, select_backend
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.published.single_choice import schema_of, single
from load_tests.errors import BenchFailed


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def grammar(texts: list[str], tokenizer: GrammarTokenizer, canonical: bool) -> CompiledGrammar:
    spec = GrammarSpec(GrammarKind.CHOICE, json.dumps(texts), canonical=canonical)
    backend = select_backend(spec)
    return backend.load(backend.compile(spec, tokenizer).data, tokenizer)


def test_canonical_masks_leave_no_choice_between_spellings(tokenizer: GrammarTokenizer) -> None:
    text = "the price is"
    tokens = tokenizer.inner.encode(text.encode()) or ()
    plain, canonical = (grammar([text], tokenizer, kept).matcher(None, 0) for kept in (False, True))
    assert all(single(canonical, tokens, tokenizer.vocab_size))
    found = single(plain, tokens, tokenizer.vocab_size)
    assert len(found) == len(tokens)
    assert not found[0]


def test_a_text_that_the_grammar_lacks_is_no_measurement(tokenizer: GrammarTokenizer) -> None:
    matcher = grammar(["yes", "no"], tokenizer, canonical=False).matcher(None, 0)
    with pytest.raises(BenchFailed):
        single(matcher, tokenizer.encode("maybe"), tokenizer.vocab_size)


def test_the_schema_of_an_object_has_its_names_and_types() -> None:
    schema = schema_of({"name": "Ida", "age": 39, "price": 1.5, "free": False, "topics": ["poetry"]})
    kinds = {name: value["type"] for name, value in schema["properties"].items()}
    assert kinds == {"name": "string", "age": "integer", "price": "number", "free": "boolean", "topics": "array"}
    assert schema["required"] == [*kinds]
