"""A matcher that follows only when it is asked answers as one that follows at once, and remembers what it was told."""

from __future__ import annotations

import pytest
import torch

from grammar_service.backends import backend_named
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.deferred_grammar import DeferredGrammar
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

TOKENIZER = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)


def _grammar(*, defers: bool) -> DeferredGrammar:
    backend = backend_named("xgrammar")
    loaded = backend.load(backend.compile(GrammarSpec(GrammarKind.REGEX, "abc"), TOKENIZER).data, TOKENIZER)
    return DeferredGrammar(loaded.matcher(None, 2), "key", None, defers)


def _ids(text: bytes) -> list[int]:
    return [TOKENIZER.vocabulary.index(bytes([byte])) for byte in text]


def _mask(grammar: DeferredGrammar) -> list[int]:
    mask = torch.zeros((1, (VOCAB_SIZE + 31) // 32), dtype=torch.int32)
    grammar.fill_bitmask(mask, 0)
    return mask[0].tolist()


@pytest.fixture(params=[False, True], ids=["at once", "put off"])
def grammar(request: pytest.FixtureRequest) -> DeferredGrammar:
    return _grammar(defers=request.param)


def test_masks_are_those_after_all_tokens(grammar: DeferredGrammar) -> None:
    assert grammar.accept_tokens("request", _ids(b"a"))
    assert grammar.accept_tokens("request", _ids(b"b"))
    other = _grammar(defers=False)
    assert other.advance(_ids(b"ab"))
    assert _mask(grammar) == _mask(other)
    assert grammar.accept_tokens("request", _ids(b"c"))
    assert not grammar.is_terminated()
    assert grammar.accept_tokens("request", list(TOKENIZER.stop_token_ids[:1]))
    assert grammar.is_terminated()


def test_drafts_are_taken_back(grammar: DeferredGrammar) -> None:
    assert grammar.accept_tokens("request", _ids(b"a"))
    before = _mask(grammar)
    assert grammar.validate_tokens(_ids(b"bcx")) == _ids(b"bc")
    assert grammar.accept_tokens("request", _ids(b"bc"))
    assert grammar.is_terminated() is False
    grammar.rollback(2)
    assert _mask(grammar) == before
    assert grammar.take_all() == _ids(b"a")


def test_each_token_is_told_once(grammar: DeferredGrammar) -> None:
    grammar.accept_tokens("request", _ids(b"a"))
    assert grammar.take_unsent() == _ids(b"a")
    assert grammar.take_unsent() == []
    grammar.accept_tokens("request", _ids(b"bc"))
    assert grammar.take_unsent() == _ids(b"bc")
    assert grammar.take_all() == _ids(b"abc")


def test_a_violation_is_told_at_once_or_with_the_next_tokens() -> None:
    at_once, later = _grammar(defers=False), _grammar(defers=True)
    assert not at_once.accept_tokens("request", _ids(b"ax"))
    assert later.accept_tokens("request", _ids(b"ax"))
    assert not later.is_terminated()
    assert later.take_all() == _ids(b"a")
    assert not later.accept_tokens("request", _ids(b"b"))


def test_what_is_taken_ahead_is_followed_at_once(grammar: DeferredGrammar) -> None:
    assert grammar.advance_ahead(_ids(b"a"))
    assert not grammar.advance_ahead(_ids(b"x"))
    assert not grammar.accept_tokens("request", _ids(b"ax"))
