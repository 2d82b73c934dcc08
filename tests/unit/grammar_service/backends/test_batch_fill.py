"""Masks that are filled together are those that are filled one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.backends import CompiledGrammar, Matcher
from grammar_service.backends.batch_fill import BatchFiller
from grammar_service.backends.canonical.matcher import CanonicalGrammar
from grammar_service.spec import FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of, schema_spec
from tests.tokenizers.tiny_tokenizer import OTHER_STOP_ID, STOP_ID, VOCAB_SIZE, tiny_tokenizer

WIDTH = (VOCAB_SIZE + 31) // 32
_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["b"]}


@pytest.fixture(scope="module")
def grammars(tokenizer: GrammarTokenizer) -> list[CompiledGrammar]:
    specs = [GrammarSpec(GrammarKind.REGEX, "ab?[0-9]*"), schema_spec(_OBJECT, STANDARD), schema_spec(_OBJECT, FLEXIBLE)]
    plain = [grammar_of(spec, tokenizer, backend) for spec in specs for backend in ("xgrammar", "llguidance")]
    return [*plain, *(CanonicalGrammar(grammar, tokenizer.canonical, tokenizer.stop_token_ids) for grammar in plain)]


@given(walks=st.lists(st.tuples(st.integers(0, 11), st.booleans(), st.lists(st.integers(0, 1 << 30), max_size=40)), max_size=12))
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("threads", [1, 3])
def test_masks_filled_together_are_the_same(
    grammars: Sequence[CompiledGrammar], tokenizer: GrammarTokenizer, threads: int, walks: list[tuple[int, bool, list[int]]]
) -> None:
    matchers = [_walked(grammars[number], other_stop, choices) for number, other_stop, choices in walks]
    alone = torch.full((2 * len(matchers) + 1, WIDTH), 0x5A5A5A5A, dtype=torch.int32)
    together = alone.clone()
    rows = [2 * number + 1 for number in range(len(matchers))]
    for matcher, row in zip(matchers, rows, strict=True):
        matcher.fill(alone, row)
    BatchFiller(tokenizer, threads).fill(matchers, together, rows)
    assert np.array_equal(together.numpy(), alone.numpy())


def _walked(grammar: CompiledGrammar, other_stop: bool, choices: list[int]) -> Matcher:
    matcher = grammar.matcher((OTHER_STOP_ID, STOP_ID) if other_stop else None, 0)
    for choice in choices:
        if options := sorted(allowed(matcher, VOCAB_SIZE)):
            assert matcher.accept(options[choice % len(options)])
    return matcher


def test_a_vocabulary_travels_and_keeps_its_fingerprint() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    arrived = GrammarTokenizer.from_portable(tokenizer.portable())
    assert arrived.fingerprint == tokenizer.fingerprint
    assert arrived.encode('{"ab": true}') == tokenizer.encode('{"ab": true}')
    assert arrived.stop_token_ids == tokenizer.stop_token_ids
