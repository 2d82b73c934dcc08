"""Loaded grammars keep to their memory."""

from __future__ import annotations

from contextlib import suppress

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import backend_named
from grammar_service.backends.mask_budget import MAX_STALL_S, SLOW_MASK_S
from grammar_service.errors import ArtifactError
from grammar_service.heap import trim_heap
from grammar_service.own_memory import TouchedMemory, resident_bytes
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.soak.schemas import schema
from model_service.artifact_channel import Payload
from model_service.errors import GrammarMemoryFull
from model_service.loaded_grammars import COMPILER_SHARE, MAX_GROWN_BYTES, TRIMMED_BYTES, LoadedGrammars, MatcherUse
from tests.driving import schema_spec
from tests.native_memory import handed_out
from tests.offered_grammars import offered, offered_specs
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer

MIB = 1 << 20
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
        grammars.drop(first)
        second = grammars.get("1", channel)
        assert second is not first
        grammars.drop(first)  # which another request has dropped already
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


def test_one_whose_matchers_have_taken_much_is_loaded_anew() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        grammars = LoadedGrammars(tokenizer, 1 << 30)
        first = grammars.get("1", channel)
        for _ in range(8):
            assert not first.charge(0.0, MAX_GROWN_BYTES // 8)
        assert grammars.get("1", channel) is first
        assert not first.charge(0.0, MAX_GROWN_BYTES // 8)
        assert grammars.get("1", channel) is not first


def test_requests_of_the_grammar_that_takes_most_end_where_all_take_too_much() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        grammars = LoadedGrammars(tokenizer, 1 << 30, max_in_use_bytes=128 * MIB)
        largest, other, third = (grammars.get(key, channel) for key in "123")
        assert not largest.charge(0.0, 80 * MIB)
        assert not other.charge(0.0, 32 * MIB)
        assert not third.charge(0.0, 16 * MIB), "its own requests go on: they do not take most"
        assert largest.charge(0.0, 0)
        assert not other.charge(0.0, 32 * MIB), "what the largest takes is on its way out"
        assert third.charge(0.0, 40 * MIB), "but it has not gone, and there is an end"
        with pytest.raises(GrammarMemoryFull):
            grammars.get("1", channel)
        del largest, third
        assert grammars.get("1", channel)
        assert not other.charge(0.0, 0)


def test_of_the_tenant_that_takes_most_the_largest_ends() -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        grammars = LoadedGrammars(tokenizer, 1 << 30, max_in_use_bytes=128 * MIB)
        first, second = (grammars.get(key, channel, "heavy") for key in "12")
        other = grammars.get("3", channel, "light")
        for grammar, mib in ((first, 45), (second, 40), (other, 50)):
            grammar.charge(0.0, mib * MIB)
        assert [grammar.charge(0.0, 0) for grammar in (first, second, other)] == [True, False, False]


def test_requests_of_a_grammar_end_whose_masks_are_slow_again_and_again() -> None:
    """Each of them may have a slow one."""
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    with offered_specs(SPECS, tokenizer) as channel:
        grammar = LoadedGrammars(tokenizer, 1 << 30).get("1", channel)
        assert not any(grammar.charge(SLOW_MASK_S, 0) for _ in range(1000))
        assert not grammar.charge(MAX_STALL_S / 2, 0)
        assert grammar.charge(MAX_STALL_S, 0)
        assert grammar.charge(0.0, 0)


def test_memory_of_matchers_that_have_gone_does_not_serve_others_uncounted() -> None:
    """EBNF for which xgrammar keeps 31 KB of each byte."""
    tokenizer = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    specs = {key: GrammarSpec(GrammarKind.EBNF, f'root ::= "a" root [b-{last}]* | ""') for key, last in zip("12", "de", strict=True)}
    text = [tokenizer.vocabulary.index(b"a")] * 800 + [tokenizer.vocabulary.index(b"b")] * 400
    with offered_specs(specs, tokenizer) as channel:
        grammars, grown = LoadedGrammars(tokenizer, 1 << 30), []
        grammars.has_freed = True  # what other tests have left would be used first
        for key in (*"12", *"12"):
            grammar, before = grammars.get(key, channel), grammars.get(key, channel).grown_bytes
            matcher = grammar.matcher(None, 0)
            use = MatcherUse(grammar, matcher)
            assert not use.must_end()
            memory = TouchedMemory()
            assert all(map(matcher.accept, text))
            use.charge(0.0, memory.bytes())
            grown.append(grammar.grown_bytes - before)
            del matcher, grammar, use
        assert min(grown) > TRIMMED_BYTES
        assert min(grown) > max(grown) / 2


def test_memory_that_a_load_takes_counts_though_the_library_tells_nothing_of_it() -> None:
    """Terminals that are nested hold memory with the square of their number. Each backend's first load makes tables, and is not counted."""
    nested = "".join(f'T{number}: (T{number + 1} "a")+ "x"\n' for number in range(300))
    grammar = f'start: "?" T0\n{nested}T300: "z"\n'
    tokenizer = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    payload = Payload("llguidance", backend_named("llguidance").compile(GrammarSpec(GrammarKind.LARK, grammar), tokenizer).data)
    with offered(dict.fromkeys(map(str, range(21)), payload)) as channel:
        grammars = LoadedGrammars(tokenizer, 1 << 30)
        first = grammars.get("0", channel).size_bytes
        trim_heap()
        before = resident_bytes()
        counted = sum(grammars.get(str(number), channel).size_bytes for number in range(1, 21))
        grown = resident_bytes() - before
    assert grown > 100 * first
    assert 0.7 * grown < counted < 1.5 * grown


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
