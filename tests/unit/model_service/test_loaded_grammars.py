"""Loaded grammars keep to their memory."""

from __future__ import annotations

from contextlib import suppress

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import backend_named
from grammar_service.errors import ArtifactError
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.soak.schemas import schema
from model_service.artifact_channel import Payload
from model_service.errors import GrammarMemoryFull
from model_service.loaded_grammars import COMPILER_SHARE, MIN_GROWTH_BYTES, LoadedGrammars
from tests.driving import schema_spec
from tests.native_memory import handed_out
from tests.offered_grammars import offered, offered_specs
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

SPECS = {number: GrammarSpec(GrammarKind.REGEX, f"[a-z]{{{number}}}") for number in "123"}


def test_what_has_not_been_asked_for_the_longest_time_goes_first() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        sizes = [LoadedGrammars(tokenizer, 0).get(key, channel).size_bytes for key in SPECS]
        room = sum(sizes) - min(sizes) // 2
        grammars = LoadedGrammars(tokenizer, room * COMPILER_SHARE // (COMPILER_SHARE - 1))
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


def test_what_is_dropped_is_loaded_anew() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        grammars = LoadedGrammars(tokenizer, 1 << 30)
        first = grammars.get("1", channel)
        grammars.drop("1", first)
        second = grammars.get("1", channel)
        assert second is not first
        grammars.drop("1", first)  # which another request has dropped already
        assert grammars.get("1", channel) is second


def test_grammars_that_are_in_use_count_until_nobody_uses_them() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    specs = {str(number): GrammarSpec(GrammarKind.REGEX, f"{chr(87 + number)}[a-z]{{12}}") for number in range(10, 30)}
    with offered_specs(specs, tokenizer) as channel:
        size = LoadedGrammars(tokenizer, 0).get("29", channel).size_bytes
        grammars = LoadedGrammars(tokenizer, 0, max_in_use_bytes=8 * size)  # keeps the last one
        heavy = [grammars.get(str(number), channel, "heavy") for number in range(10, 16)]
        for number in range(16, 20):
            with suppress(GrammarMemoryFull):
                heavy.append(grammars.get(str(number), channel, "heavy"))
        assert len(heavy) < 10
        light = grammars.get("20", channel, "light")
        with pytest.raises(GrammarMemoryFull):
            grammars.get("21", channel, "heavy")
        assert grammars.get("20", channel, "heavy") is light, "what is loaded is everybody's"
        heavy.clear()
        assert grammars.get("21", channel, "heavy")


def test_all_others_go_where_the_process_has_grown_by_much_more_than_they_are_said_to_take() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    held = [1 << 30]
    with offered_specs(SPECS, tokenizer) as channel:
        grammars = LoadedGrammars(tokenizer, 1 << 20, lambda: held[0])
        grammars.get("1", channel)
        held[0] += MIN_GROWTH_BYTES
        grammars.get("2", channel)
        assert len(grammars) == 2
        held[0] += 1
        third = grammars.get("3", channel)
        assert (len(grammars), grammars.get("3", channel)) == (1, third)
        grammars.get("1", channel)  # from there on, growth counts anew
        assert len(grammars) == 2


def test_what_compilers_keep_of_recipes_is_within_the_memory_too() -> None:
    tokenizer, library, mib = GrammarTokenizer.load(EMBEDDED_WEIGHTS), backend_named("xgrammar"), 1 << 20
    specs = [spec for number in range(160) if not library.unsupported(spec := schema_spec(schema(number)))]
    with offered({str(number): Payload("xgrammar", library.compile(spec, tokenizer).data) for number, spec in enumerate(specs)}) as channel:
        grammars = LoadedGrammars(tokenizer, 2 * mib)
        grammars.get("0", channel)  # what is made once a tokenizer
        before = handed_out()
        for number in range(len(specs)):
            grammars.get(str(number), channel)
        assert handed_out() - before < 5 * mib
    assert grammars.loaded == len(specs)


def test_a_backend_that_there_is_not_is_an_artifact_at_fault() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered({"key": Payload("other", b"")}) as channel, pytest.raises(ArtifactError, match="other"):
        LoadedGrammars(tokenizer, 1).get("key", channel)
