"""A matcher in vLLM's clothes: what it took ahead of vLLM is not taken twice, and a violation stays one."""

from __future__ import annotations

import pytest

from grammar_service.backends import backend_named
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.backend import KeyedGrammar
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

TOKENIZER = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)


@pytest.fixture
def grammar() -> KeyedGrammar:
    backend = backend_named("xgrammar")
    spec = GrammarSpec(GrammarKind.REGEX, "abc")
    return KeyedGrammar(backend.load(backend.compile(spec, TOKENIZER).data, TOKENIZER).matcher(None, 0))


def _ids(text: bytes) -> list[int]:
    return [TOKENIZER.vocabulary.index(bytes([byte])) for byte in text]


def test_tokens_that_were_taken_ahead_are_not_taken_twice(grammar: KeyedGrammar) -> None:
    assert grammar.advance_ahead(_ids(b"ab"))
    assert grammar.accept_tokens("request", _ids(b"abc"))
    assert grammar.accept_tokens("request", list(TOKENIZER.stop_token_ids[:1]))
    assert grammar.is_terminated()


def test_a_violation_ahead_is_told_when_vllm_asks(grammar: KeyedGrammar) -> None:
    assert not grammar.advance_ahead(_ids(b"ax"))
    assert not grammar.accept_tokens("request", _ids(b"ax"))
    assert not grammar.accept_tokens("request", _ids(b"b"))


def test_drafts_are_tried_without_being_taken(grammar: KeyedGrammar) -> None:
    assert grammar.validate_tokens(_ids(b"abx")) == _ids(b"ab")
    assert grammar.accept_tokens("request", _ids(b"abc"))
    assert not grammar.accept_tokens("request", _ids(b"c"))
