"""Another matcher, less what the tokenizer would not make."""

from __future__ import annotations

import json
from itertools import product
from random import Random

import pytest
import torch

from grammar_service.automata.byte_dfa import of_regex
from grammar_service.automata.cartesian_merge import cartesian_merge
from grammar_service.automata.token_index import TokenIndex
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.backends.canonical.matcher import CanonicalGrammar, CanonicalMatcher
from grammar_service.spec import COMPACT, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, schema_spec
from tests.unit.grammar_service.backends.canonical.matchers import BACKENDS, matcher_of, regex

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "kind": {"enum": ["a cat", "a dog", "another"]}},
    "required": ["name", "age", "kind"],
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_text_has_one_sequence(backend: str, embedded: GrammarTokenizer) -> None:
    text = '{"name": "Ada Lovelace", "age": 36}'
    matcher = matcher_of(GrammarSpec(GrammarKind.CHOICE, json.dumps([text])), embedded, backend)
    for token in embedded.encode(text):
        assert allowed(matcher, embedded.vocab_size) == {token}
        assert matcher.accept(token)
    assert allowed(matcher, embedded.vocab_size) == set(embedded.stop_token_ids)
    assert matcher.accept(embedded.stop_token_ids[0])
    assert matcher.is_terminated()
    assert allowed(matcher, embedded.vocab_size) == set()
    assert not matcher.has_fallen_back


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_sequence_of_the_text_is_refused_and_changes_nothing(backend: str, embedded: GrammarTokenizer) -> None:
    matcher = matcher_of(regex("(the end|other)"), embedded, backend)
    before = allowed(matcher, embedded.vocab_size)
    letters = [embedded.vocabulary.index(b"%c" % byte) for byte in b"the end"]
    assert embedded.encode("the end") != letters
    taken = next(number for number, letter in enumerate(letters) if not matcher.accept(letter))
    matcher.rollback(taken)
    assert allowed(matcher, embedded.vocab_size) == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_rollback_and_reset_take_tokens_back(backend: str, embedded: GrammarTokenizer) -> None:
    matcher = matcher_of(regex("[a-z ]+"), embedded, backend)
    course = [allowed(matcher, embedded.vocab_size)]
    tokens = [*embedded.encode("one and another"), embedded.stop_token_ids[0]]
    for token in tokens:
        assert matcher.accept(token)
        course.append(allowed(matcher, embedded.vocab_size))
    for _ in tokens:
        course.pop()
        matcher.rollback(1)
        assert allowed(matcher, embedded.vocab_size) == course[-1]
    assert matcher.accept(tokens[0])
    matcher.reset()
    assert allowed(matcher, embedded.vocab_size) == course[0]
    with pytest.raises(ValueError, match="cannot take back"):
        matcher.rollback(1)


@pytest.mark.parametrize(
    ("backend", "pattern"),
    [
        *product(BACKENDS, ["(the|that|then)( end| ends|ing)?", "[0-9]{1,3}( {1,3}|\\.)[a-c]{2}", " {1,5}x?"]),
        ("xgrammar", "<tool(_call>)?"),
    ],
)
def test_masks_are_those_of_the_exact_product(pattern: str, backend: str, embedded: GrammarTokenizer) -> None:
    """Where few tokens are allowed: what leads nowhere within a few is left out. llguidance never allows an added token."""
    index = TokenIndex.of_language(of_regex(pattern), TokenTrie(embedded.vocabulary))
    exact = cartesian_merge(index, embedded.canonical)
    matcher, chance, stops = matcher_of(regex(pattern), embedded, backend), Random(4), set(embedded.stop_token_ids)
    for _ in range(12):
        matcher.reset()
        state: int | None = 0
        while state is not None:
            expected = set(exact.row(state)[0].tolist()) | (stops if exact.accepting[state] else set())
            assert allowed(matcher, embedded.vocab_size) == expected
            token = chance.choice(sorted(expected))
            assert matcher.accept(token)
            state = None if token in stops else exact.after(state, token)
    assert not matcher.has_fallen_back


@pytest.mark.parametrize("backend", BACKENDS)
def test_walks_end_in_what_the_tokenizer_makes(backend: str, embedded: GrammarTokenizer) -> None:
    chance, stops = Random(6), set(embedded.stop_token_ids)
    matcher = matcher_of(schema_spec(SCHEMA, COMPACT), embedded, backend)
    for _ in range(15):
        matcher.reset()
        tokens: list[int] = []
        while not matcher.is_terminated():
            options = allowed(matcher, embedded.vocab_size)
            token = drawn(matcher, options, chance, len(tokens), embedded)
            assert matcher.accept(token)
            tokens += [] if token in stops else [token]
        text = b"".join(embedded.vocabulary[token] for token in tokens).decode()
        assert embedded.encode(text) == tokens
        assert json.loads(text)["kind"] in SCHEMA["properties"]["kind"]["enum"]  # type: ignore[index]
        assert not matcher.has_fallen_back


def drawn(matcher: CanonicalMatcher, options: set[int], chance: Random, step: int, tokenizer: GrammarTokenizer) -> int:
    """One that leads somewhere; long texts are brought to their end."""
    closing = [token for token in sorted(options) if tokenizer.vocabulary[token][:1] in (b'"', b",", b"}")] if step > 12 else []
    waiting = closing or sorted(option for option in options if tokenizer.vocabulary[option].isascii())
    while True:
        token = chance.choice(waiting)
        if not matcher.leads_nowhere(token):
            return token
        waiting.remove(token)


def test_a_token_that_leads_nowhere_is_told(embedded: GrammarTokenizer) -> None:
    """A blank and a letter are one token where the tokenizer has that: after the blank alone, no letter is its own."""
    matcher = matcher_of(regex("a( the|\\.)"), embedded, "xgrammar")
    assert matcher.accept(embedded.encode("a")[0])
    blank = embedded.encode(" ")[0]
    assert embedded.encode(" the") != [blank, *embedded.encode("the")]
    assert blank not in allowed(matcher, embedded.vocab_size)
    assert not matcher.leads_nowhere(embedded.encode(" the")[0])


def test_a_banned_token_is_left_out_where_it_was_banned_and_nowhere_else(embedded: GrammarTokenizer) -> None:
    matcher = matcher_of(regex("[a-z ]+"), embedded, "xgrammar")
    first, second = embedded.encode("one and")
    assert matcher.accept(first)
    options = allowed(matcher, embedded.vocab_size)
    matcher.ban(second)
    assert allowed(matcher, embedded.vocab_size) == options - {second}
    assert matcher.accept(min(options - {second}))
    assert not matcher.banned
    matcher.rollback(1)
    assert allowed(matcher, embedded.vocab_size) == options - {second}
    matcher.rollback(1)
    assert matcher.accept(first)
    assert allowed(matcher, embedded.vocab_size) == options


def test_where_all_that_is_left_is_banned_the_other_matcher_goes_on(embedded: GrammarTokenizer) -> None:
    matcher = matcher_of(regex("one"), embedded, "xgrammar")
    (token,) = embedded.encode("one")
    matcher.ban(token)
    plain = matcher_of(regex("one"), embedded, "xgrammar").inner
    assert allowed(matcher, embedded.vocab_size) == allowed(plain, embedded.vocab_size)
    assert matcher.accept(token)


def test_where_nothing_is_left_the_other_matcher_goes_on(embedded: GrammarTokenizer) -> None:
    """Only a grammar of tokens gets there, not one of texts."""
    byte_of = {text: token for token, text in enumerate(embedded.vocabulary) if len(text) == 1}
    spelled = [byte_of[bytes([byte])] for byte in b"ab"]
    assert embedded.encode("ab") != spelled
    grammar = OneSequence(spelled, embedded)
    matcher = CanonicalGrammar(grammar, embedded.canonical, embedded.stop_token_ids).matcher(None, 4)
    assert allowed(matcher, embedded.vocab_size) == {spelled[0]}
    assert matcher.accept(spelled[0])
    assert allowed(matcher, embedded.vocab_size) == {spelled[1]}
    before = matcher.has_fallen_back
    assert matcher.accept(spelled[1])
    assert (before, matcher.has_fallen_back) == (False, True)
    assert matcher.accept(embedded.stop_token_ids[0])
    assert matcher.is_terminated()


class OneSequence:
    """A grammar, and a matcher, of one token sequence."""

    size_bytes = 0

    def __init__(self, tokens: list[int], tokenizer: GrammarTokenizer) -> None:
        self._tokens = [*tokens, tokenizer.stop_token_ids[0]]
        self._at = 0

    def matcher(self, stop_token_ids: object, max_rollback_tokens: int) -> OneSequence:
        return self

    def accept(self, token: int) -> bool:
        fits = self._tokens[self._at : self._at + 1] == [token]
        self._at += fits
        return fits

    def rollback(self, n: int) -> None:
        self._at -= n

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        bitmask[row].zero_()
        for token in self._tokens[self._at : self._at + 1]:
            bitmask[row, token // 32] = 1 << token % 32

    def forced_bytes(self) -> bytes:
        return b""

    @property
    def names_tokens(self) -> bool:
        return False

    def is_terminated(self) -> bool:
        return self._at == len(self._tokens)

    def reset(self) -> None:
        self._at = 0
