from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of

AWKWARD = ['a"b', "c\nd", "é\\", "\x7f\x05", "a | b", "😀", "'", "/", "{a}", " ", "\\n", "\u2028", "#"]


@pytest.mark.parametrize("backend", ["xgrammar", "llguidance"])
def test_exactly_the_choices_are_accepted_whatever_their_characters(backend: str, tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(GrammarSpec(GrammarKind.CHOICE, json.dumps(AWKWARD)), tokenizer, backend)
    others = ["a", "", "b", "c\\nd", "é", "a | ", "root", "\n"]
    assert [text for text in AWKWARD if not accepts(grammar, text)] == []
    assert [text for text in others if accepts(grammar, text)] == []


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6), min_size=1, max_size=5
    )
)
def test_any_text_can_be_a_choice(choices: list[str]) -> None:
    from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    grammar = grammar_of(GrammarSpec(GrammarKind.CHOICE, json.dumps(choices)), tokenizer)
    assert all(accepts(grammar, choice) for choice in choices)
