"""Drives a compiled grammar with text, in tests."""

from __future__ import annotations

import json
import random
from typing import Any

import torch

from grammar_service.backends import CompiledGrammar, Matcher, backend_named, select_backend
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.tokenizers.tiny_tokenizer import STOP_ID, tiny_tokenizer

_TOKENIZER = tiny_tokenizer()


def schema_spec(schema: Any, whitespace: str = STANDARD) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), whitespace)


def grammar_of(spec: GrammarSpec, tokenizer: GrammarTokenizer, backend: str | None = None) -> CompiledGrammar:
    """Compiled and loaded by the named backend, or by the one that is selected."""
    chosen = backend_named(backend) if backend else select_backend(spec)
    return chosen.load(chosen.compile(spec, tokenizer).data, tokenizer)


def ids_of(text: str) -> list[int]:
    return list(_TOKENIZER.encode(text, add_special_tokens=False))


def accepts(grammar: CompiledGrammar, text: str) -> bool:
    """Whether the whole text, and the end after it, is in the grammar's language."""
    ids = [*ids_of(text), STOP_ID]
    return accepted_prefix(grammar.matcher(None, 0), ids) == len(ids)


def allowed(matcher: Matcher, vocab_size: int) -> set[int]:
    row = torch.zeros(1, (vocab_size + 31) // 32, dtype=torch.int32)
    matcher.fill(row, 0)
    bits = ((row[0].unsqueeze(1) >> torch.arange(32)) & 1).flatten()
    return {int(token) for token in bits.nonzero().flatten()}


def sample(grammar: CompiledGrammar, tokenizer: GrammarTokenizer, seed: int, most: int = 120) -> str | None:
    """A random text of the grammar, None if it did not end within `most` tokens."""
    choose = random.Random(seed)
    matcher = grammar.matcher(None, 0)
    vocabulary = tokenizer.xgrammar.decoded_vocab
    text = b""
    for step in range(most):
        options = sorted(allowed(matcher, tokenizer.vocab_size))
        plain = [token for token in options if vocabulary[token].isascii()]
        closing = [token for token in plain if vocabulary[token] in (b'"', b"}", b"]", b'"}')]
        token = STOP_ID if STOP_ID in options and choose.random() < 0.5 else choose.choice((step > 30 and closing) or plain or options)
        assert matcher.accept(token)
        if token == STOP_ID:
            return text.decode("utf-8")
        text += vocabulary[token]
    return None
