"""Every backend's matcher behaves alike."""

from __future__ import annotations

import json
import random

import pytest
import torch

from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.backends.llguidance.backend import LlguidanceBackend
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.backends.xgrammar.backend import XgrammarBackend
from grammar_service.errors import ArtifactError
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, allowed, grammar_of, ids_of, schema_spec
from tests.tokenizers.tiny_tokenizer import OTHER_STOP_ID, STOP_ID, USER_ID, VOCAB_SIZE, tiny_tokenizer

BACKENDS = ["xgrammar", "llguidance"]
EVERY_BACKEND = [*BACKENDS, "automata"]
A, B, AB = ids_of("a")[0], ids_of("b")[0], ids_of("ab")[0]


@pytest.fixture(params=EVERY_BACKEND)
def grammar(request: pytest.FixtureRequest, tokenizer: GrammarTokenizer) -> CompiledGrammar:
    return grammar_of(GrammarSpec(GrammarKind.REGEX, "ab?"), tokenizer, request.param)


def test_first_mask_is_what_can_start_the_text(grammar: CompiledGrammar) -> None:
    assert allowed(grammar.matcher(None, 0), VOCAB_SIZE) == {A, AB}


def test_complete_text_allows_stop_and_its_continuations(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 0)
    assert matcher.accept(A)
    assert allowed(matcher, VOCAB_SIZE) == {B, STOP_ID}


def test_exhausted_text_allows_only_stop(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 0)
    assert matcher.accept(AB)
    assert not matcher.is_terminated()
    assert allowed(matcher, VOCAB_SIZE) == {STOP_ID}


def test_only_the_row_that_is_asked_for_is_written_whichever_bitmask_it_is_of(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 0)
    first, second = (torch.full((3, -(-VOCAB_SIZE // 32)), 7, dtype=torch.int32) for _ in range(2))
    for bitmask, row in ((first, 1), (second, 2), (first, 0)):
        matcher.fill(bitmask, row)
    assert not (first[1] == 7).all()
    for written in (first[0], second[2]):
        assert torch.equal(written, first[1])
    for untouched in (first[2], second[0], second[1]):
        assert (untouched == 7).all()


def test_llguidance_writes_nowhere_else(tokenizer: GrammarTokenizer) -> None:
    """It is given an address."""
    matcher = grammar_of(GrammarSpec(GrammarKind.REGEX, "ab?"), tokenizer, "llguidance").matcher(None, 0)
    words = -(-VOCAB_SIZE // 32)
    for bitmask, row in (
        (torch.zeros(2, words, dtype=torch.int32), 2),
        (torch.zeros(2, words, dtype=torch.int32), -1),
        (torch.zeros(2, words, dtype=torch.int64), 0),
        (torch.zeros(2, 2 * words, dtype=torch.int32)[:, ::2], 0),
    ):
        with pytest.raises(ValueError, match="contiguous int32, and have the row"):
            matcher.fill(bitmask, row)


def test_stop_terminates_and_nothing_follows(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 0)
    assert matcher.accept(A)
    assert matcher.accept(STOP_ID)
    assert matcher.is_terminated()
    assert not matcher.accept(B)
    assert not matcher.accept(STOP_ID)
    assert allowed(matcher, VOCAB_SIZE) == set()


def test_stop_before_the_end_is_refused_and_changes_nothing(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 0)
    assert not matcher.accept(STOP_ID)
    assert not matcher.accept(B)
    assert allowed(matcher, VOCAB_SIZE) == {A, AB}


def test_trying_tokens_counts_the_accepted_prefix_and_keeps_the_state(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 0)
    assert accepted_prefix(matcher, [A, B, STOP_ID, A]) == 3
    assert accepted_prefix(matcher, [A, A]) == 1
    assert accepted_prefix(matcher, []) == 0
    assert allowed(matcher, VOCAB_SIZE) == {A, AB}
    assert not matcher.is_terminated()


def test_rollback_crosses_termination(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 8)
    assert all(matcher.accept(token) for token in (A, B, STOP_ID))
    matcher.rollback(2)
    assert not matcher.is_terminated()
    assert allowed(matcher, VOCAB_SIZE) == {B, STOP_ID}
    matcher.rollback(1)
    assert allowed(matcher, VOCAB_SIZE) == {A, AB}


def test_rollback_of_more_than_was_accepted_is_an_error(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 8)
    assert matcher.accept(A)
    with pytest.raises(ValueError, match="cannot take back"):
        matcher.rollback(2)


def test_reset_returns_to_the_start(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher(None, 0)
    assert all(matcher.accept(token) for token in (A, STOP_ID))
    matcher.reset()
    assert not matcher.is_terminated()
    assert allowed(matcher, VOCAB_SIZE) == {A, AB}


def test_other_stop_tokens_replace_the_tokenizers(grammar: CompiledGrammar) -> None:
    matcher = grammar.matcher([OTHER_STOP_ID], 0)
    assert matcher.accept(A)
    assert allowed(matcher, VOCAB_SIZE) == {B, OTHER_STOP_ID}
    assert not matcher.accept(STOP_ID)
    assert matcher.accept(OTHER_STOP_ID)


def test_matchers_of_one_grammar_are_independent(grammar: CompiledGrammar) -> None:
    first, second = grammar.matcher(None, 0), grammar.matcher(None, 0)
    assert first.accept(A)
    assert allowed(second, VOCAB_SIZE) == {A, AB}


def test_only_the_named_row_is_written(grammar: CompiledGrammar, tokenizer: GrammarTokenizer) -> None:
    import torch

    rows = torch.full((3, (VOCAB_SIZE + 31) // 32), 7, dtype=torch.int32)
    grammar.matcher(None, 0).fill(rows, 1)
    assert (rows[0] == 7).all()
    assert (rows[2] == 7).all()
    assert not (rows[1] == 7).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_special_tokens_and_ids_without_text_are_never_allowed(backend: str, tokenizer: GrammarTokenizer) -> None:
    matcher = grammar_of(schema_spec({"type": "string"}), tokenizer, backend).matcher(None, 0)
    assert matcher.accept(ids_of('"')[0])
    inside = allowed(matcher, VOCAB_SIZE)
    assert USER_ID not in inside
    assert STOP_ID not in inside
    assert max(inside) < 280


@pytest.mark.parametrize("backend", EVERY_BACKEND)
def test_the_spelling_of_a_special_token_is_text_that_can_be_forced(backend: str, tokenizer: GrammarTokenizer) -> None:
    stop = tiny_tokenizer().eos_token
    matcher = grammar_of(GrammarSpec(GrammarKind.CHOICE, json.dumps([f"a{stop}b"])), tokenizer, backend).matcher(None, 0)
    text = b""
    while options := allowed(matcher, VOCAB_SIZE) - {STOP_ID}:
        token = min(options)
        text += tokenizer.vocabulary[token]
        assert matcher.accept(token)
    assert text.decode() == f"a{stop}b"
    assert allowed(matcher, VOCAB_SIZE) == {STOP_ID}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("whitespace", "text"),
    [
        ("standard", '{"a": 1, "b": [true, true]}'),
        ("flexible", '{ "a":1,\n"b" : [ true,true ]}'),
        ("compact", '{"a":1,"b":[true,true]}'),
        ("indent:2", '{\n  "a": 1,\n  "b": [\n    true,\n    true\n  ]\n}'),
    ],
)
def test_whitespace_is_as_asked(backend: str, whitespace: str, text: str, tokenizer: GrammarTokenizer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "boolean"}}}}
    spec = schema_spec(schema, whitespace)
    if (XgrammarBackend() if backend == "xgrammar" else LlguidanceBackend()).unsupported(spec):
        pytest.skip("this backend leaves this whitespace to the other")
    grammar = grammar_of(spec, tokenizer, backend)
    assert accepts(grammar, text)
    assert whitespace == "flexible" or not accepts(grammar, '{ "a" : 1}')


@pytest.mark.parametrize("backend", EVERY_BACKEND)
@pytest.mark.parametrize("payload", [b"", b"\xff\xfe", b"{}", b"null", b'{"grammars": 5}'])
def test_rubbish_payload_is_an_artifact_error(backend: str, payload: bytes, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(ArtifactError):
        backend_named(backend).load(payload, tokenizer)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_mask_allows_is_accepted_with_other_stop_tokens_too(backend: str, tokenizer: GrammarTokenizer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    grammar = grammar_of(schema_spec(schema), tokenizer, backend)
    for seed in range(20):
        chance, matcher = random.Random(seed), grammar.matcher([OTHER_STOP_ID], 0)
        for _ in range(60):
            if matcher.is_terminated():
                break
            options = allowed(matcher, VOCAB_SIZE)
            assert STOP_ID not in options
            assert matcher.accept(chance.choice(sorted(options)))
