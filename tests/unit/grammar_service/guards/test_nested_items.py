"""Items in items, where none may come twice."""

from __future__ import annotations

import pytest

from grammar_service.guards.bodies import MAX_NESTED_ITEMS
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of, schema_spec
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer


@pytest.mark.parametrize(("depth", "ends"), [(MAX_NESTED_ITEMS, True), (MAX_NESTED_ITEMS + 1, False)])
def test_an_item_is_nested_only_so_deep(depth: int, ends: bool) -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    matcher = grammar_of(schema_spec({"type": "array", "uniqueItems": True}), tokenizer, "xgrammar").matcher(None, 0)
    token = {letter: tokenizer.vocabulary.index(letter) for letter in (b"[", b"]")}
    brackets = [b"["] * (1 + depth) + [b"]"] * (1 + depth)
    assert all(matcher.accept(token[bracket]) for bracket in brackets) is ends
