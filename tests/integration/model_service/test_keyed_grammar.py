"""A matcher in vLLM's clothes: what it took ahead of vLLM is not taken twice, a violation stays one, and masks that take long end it."""

from __future__ import annotations

import time
from collections.abc import Callable
from mmap import mmap
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
import xgrammar

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import CompiledGrammar, Matcher, backend_named
from grammar_service.backends.mask_budget import MAX_SLOW_MASKS, MAX_STALL_S, SEARCH_RESERVE_S
from grammar_service.backends.xgrammar.matcher import XgrammarGrammar
from grammar_service.backends.xgrammar.recipe import compiled, recipe_of
from grammar_service.segments import NOTHING, Segment
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.engine.core.backend import ArtifactBackend, KeyedGrammar
from model_service.engine.core.deferred_grammar import DeferredGrammar
from model_service.engine.lookahead.wished import _Measured
from model_service.errors import GrammarMemoryFull, RewardFailed
from model_service.loaded_grammars import LoadedGrammar, LoadedGrammars, MatcherUse
from tests.offered_grammars import offered_specs
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


AMBIGUOUS = 'root ::= e "#"\ne ::= e e | l\nl ::= [a-z] | "(" l ")"'


def test_a_request_whose_masks_take_too_long_ends() -> None:
    """A compiler that tries its masks refuses this one; others may hide it from such a walk."""
    recipe = recipe_of(GrammarSpec(GrammarKind.EBNF, AMBIGUOUS))
    tokenizer = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    grammar = XgrammarGrammar(compiled(recipe, xgrammar.GrammarCompiler(tokenizer.xgrammar)), tokenizer, recipe, recursion_tail=0)
    faults = list[bool]()
    keyed, mask = (
        KeyedGrammar(grammar.matcher(None, 0), faults.append),
        torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32),
    )
    letter = tokenizer.vocabulary.index(b"a")
    assert keyed.accept_tokens("request", [letter] * 60)
    for _ in range(MAX_SLOW_MASKS):
        keyed.fill_bitmask(mask, 0)
    assert faults == [True]
    assert not keyed.accept_tokens("request", [letter])


def test_a_grammar_that_fails_is_told_of() -> None:
    faults = list[bool]()
    backend = backend_named("llguidance")
    grammar = backend.load(backend.compile(GrammarSpec(GrammarKind.REGEX, "abc"), TOKENIZER).data, TOKENIZER)
    keyed = KeyedGrammar(grammar.matcher(None, 0), faults.append)
    assert not keyed.advance_ahead(_ids(b"x"))
    assert faults == [False]
    assert not keyed.accept_tokens("request", _ids(b"x"))
    assert faults == [False]


class Faulty:
    """A matcher with a fault of its own."""

    def is_terminated(self) -> bool:
        return False

    def accept(self, token: int) -> bool:
        raise AssertionError(token)

    fill = rollback = accept


@pytest.mark.parametrize(
    "use",
    [
        lambda keyed: keyed.accept_tokens("request", [1]),
        lambda keyed: keyed.advance_ahead([1]),
        lambda keyed: keyed.fill_bitmask(torch.zeros(1, 1, dtype=torch.int32), 0),
        lambda keyed: keyed.forced(lambda: keyed.matcher.accept(1)),
    ],
)
@pytest.mark.parametrize("defers", [None, False, True])
def test_a_fault_ends_its_request_alone(use: Callable[[KeyedGrammar], Any], defers: bool | None) -> None:
    """An error that reaches vLLM's engine core ends all of them."""
    faults, matcher = list[bool](), cast(Matcher, Faulty())
    keyed = KeyedGrammar(matcher, faults.append) if defers is None else DeferredGrammar(matcher, "key", None, defers, faults.append)
    use(keyed)
    assert not keyed.advance_ahead([1])
    assert not keyed.accept_tokens("request", [1])
    assert faults == [False]


def test_nothing_is_forced_once_looking_for_it_takes_longer_than_it_saves(grammar: KeyedGrammar) -> None:
    def find() -> Segment:
        until = time.thread_time() + 2 * SEARCH_RESERVE_S
        while time.thread_time() < until:
            pass
        return Segment((1,), False)

    assert grammar.forced(find).tokens == (1,)
    assert grammar.forced(find) == NOTHING
    assert grammar.accept_tokens("request", _ids(b"a")), "it goes on token by token"


def test_a_long_forced_text_is_no_slow_mask(grammar: KeyedGrammar) -> None:
    def find() -> Segment:
        until = time.thread_time() + SEARCH_RESERVE_S
        while time.thread_time() < until:
            pass
        return Segment((1,) * 1000, False)

    loaded = LoadedGrammar("key", cast(CompiledGrammar, None), "", LoadedGrammars(TOKENIZER, 1))
    for _ in range(int(2 * MAX_STALL_S / SEARCH_RESERVE_S)):
        keyed = KeyedGrammar(grammar.matcher, use=MatcherUse(loaded, grammar.matcher))
        assert len(keyed.forced(find).tokens) == 1000
    assert not loaded.is_over


def test_a_wish_that_takes_too_much_fails() -> None:
    with offered_specs({"key": GrammarSpec(GrammarKind.REGEX, "abc")}, TOKENIZER) as channel:
        grammar = LoadedGrammars(TOKENIZER, 1 << 30).get("key", channel)
        matcher = _Measured(grammar).matcher(None, 0)
        assert matcher.accept(*_ids(b"a"))
        grammar.is_over = True
        with pytest.raises(RewardFailed):
            matcher.accept(*_ids(b"b"))


def test_drafts_are_tried_without_being_taken(grammar: KeyedGrammar) -> None:
    assert grammar.validate_tokens(_ids(b"abx")) == _ids(b"ab")
    assert grammar.accept_tokens("request", _ids(b"abc"))
    assert not grammar.accept_tokens("request", _ids(b"c"))


def test_a_fault_in_what_drafts_need_ends_its_request_alone() -> None:
    faults = list[bool]()
    keyed = KeyedGrammar(cast(Matcher, Faulty()), faults.append)
    assert keyed.validate_tokens([1, 2]) == []
    keyed.rollback(1)
    assert not keyed.accept_tokens("request", [1])
    assert faults == [False]


def test_many_tokens_may_not_take_a_second_together() -> None:
    class Slow(Faulty):
        def accept(self, token: int) -> bool:
            until = time.thread_time() + MAX_STALL_S / 80
            while time.thread_time() < until:
                pass
            return True

    faults = list[bool]()
    keyed = KeyedGrammar(cast(Matcher, Slow()), faults.append)
    assert keyed.advance_ahead([1] * 40)
    assert not keyed.advance_ahead([1] * 100)
    assert faults == [True]


def test_a_request_whose_grammar_takes_too_much_memory_ends_alone() -> None:
    """xgrammar keeps 31 KB of each byte under one of these grammars."""
    tokenizer = GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    specs = {"hostile": GrammarSpec(GrammarKind.EBNF, 'root ::= "a" root [b-d]* | ""'), "other": GrammarSpec(GrammarKind.REGEX, "[a-d]*")}
    a, b = (tokenizer.vocabulary.index(letter) for letter in (b"a", b"b"))
    with offered_specs(specs, tokenizer) as channel:
        grammars, keyed = LoadedGrammars(tokenizer, 1), []
        for key in specs:
            grammar = grammars.get(key, channel)
            matcher = grammar.matcher(None, 0)
            keyed.append(KeyedGrammar(matcher, lambda is_slow: None, MatcherUse(grammar, matcher)))
        hostile, other = keyed
        assert hostile.accept_tokens("hostile", [a] * 800)
        taken = 0
        while hostile.accept_tokens("hostile", [b]) and taken < 20_000:
            taken += 1
            assert other.accept_tokens("other", [b])
        assert 1_000 < taken < 20_000
        assert other.accept_tokens("other", [a])


def test_what_must_end_begins_no_more_work() -> None:
    matcher, mask = cast(Matcher, Faulty()), torch.zeros(1, (TOKENIZER.vocab_size + 31) // 32, dtype=torch.int32)
    grammar = LoadedGrammar("key", cast(CompiledGrammar, None), "", LoadedGrammars(TOKENIZER, 1), is_over=True)
    keyed = KeyedGrammar(matcher, use=MatcherUse(grammar, matcher))
    keyed.fill_bitmask(mask, 0)
    assert bool((mask == -1).all()), "no token is accepted, and one has to be sampled"
    assert keyed.validate_tokens(_ids(b"b")) == []
    assert keyed.forced(lambda: Segment((1,), False)) == NOTHING
    assert not keyed.accept_tokens("request", _ids(b"b"))


def test_making_a_matcher_counts() -> None:
    class Large:
        size_bytes = 0

        def matcher(self, stop_token_ids: object, max_rollback_tokens: int) -> mmap:
            pages = mmap(-1, 8 << 20)
            pages.write(b"1" * len(pages))
            return pages

    grammars = LoadedGrammars(TOKENIZER, 1 << 30)
    grammar = LoadedGrammar("key", cast(CompiledGrammar, Large()), "", grammars)
    backend = cast(ArtifactBackend, SimpleNamespace(_max_rollback_tokens=0, grammars=grammars))
    ArtifactBackend._matcher(backend, grammar, None)
    assert grammar.grown_bytes >= 8 << 20
    grammar.is_over = True
    with pytest.raises(GrammarMemoryFull):
        ArtifactBackend._matcher(backend, grammar, None)
