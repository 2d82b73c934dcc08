"""Loaded grammars keep to their memory."""

from __future__ import annotations

from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.loaded_grammars import LoadedGrammars
from tests.offered_grammars import offered_specs
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

SPECS = {number: GrammarSpec(GrammarKind.REGEX, f"[a-z]{{{number}}}") for number in "123"}


def test_what_has_not_been_asked_for_the_longest_time_goes_first() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        sizes = [LoadedGrammars(tokenizer, 0).get(key, channel).size_bytes for key in SPECS]
        grammars = LoadedGrammars(tokenizer, sum(sizes) - min(sizes) // 2)
        first, second = (grammars.get(key, channel) for key in "12")
        assert grammars.get("1", channel) is first
        grammars.get("3", channel)
        assert (len(grammars), grammars.loaded) == (2, 3)
        assert grammars.get("1", channel) is first
        assert grammars.get("2", channel) is not second


def test_one_is_kept_whatever_it_takes() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        grammars = LoadedGrammars(tokenizer, 1)
        assert grammars.get("1", channel) is grammars.get("1", channel)
        grammars.get("2", channel)
        assert (len(grammars), grammars.loaded) == (1, 2)
