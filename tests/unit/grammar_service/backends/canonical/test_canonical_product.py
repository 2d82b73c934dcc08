"""The exact automaton of canonical regexes and choices, as a matcher."""

from __future__ import annotations

import json
from random import Random

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.automata.token_index import TokenIndex
from grammar_service.backends import backend_named
from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.backends.canonical.product import ProductGrammar, ProductMatcher, payload_of, product_of, read
from grammar_service.errors import ArtifactError
from grammar_service.segments import Segment, Segmenter
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of
from tests.tokenizers.trained_tokenizers import contractions, unsplit

WORDS = ["the end", "then ends", "their end, and more", "they ", "the", "  two", "a\n"]


@pytest.fixture(scope="module")
def embedded() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def regex(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text, canonical=True)


def choice(*texts: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.CHOICE, json.dumps(texts), canonical=True)


def matcher_of(spec: GrammarSpec, tokenizer: GrammarTokenizer, stops: tuple[int, ...] | None = None) -> ProductMatcher:
    matcher = grammar_of(spec, tokenizer).matcher(stops, 0)
    assert isinstance(matcher, ProductMatcher)
    return matcher


@pytest.mark.parametrize("spec", [choice(*WORDS), regex("(the|that|then)( end| ends|ing)?"), regex("[0-9]{1,3}( {1,3}|\\.)[a-c]{2}")])
def test_every_walk_ends_in_what_the_tokenizer_makes_of_its_text(spec: GrammarSpec, embedded: GrammarTokenizer) -> None:
    matcher, chance, stops = matcher_of(spec, embedded), Random(3), set(embedded.stop_token_ids)
    for _ in range(40):
        matcher.reset()
        tokens: list[int] = []
        while not matcher.is_terminated():
            token = chance.choice(sorted(allowed(matcher, embedded.vocab_size)))
            assert matcher.accept(token)
            tokens += [] if token in stops else [token]
        assert embedded.encode(b"".join(embedded.vocabulary[token] for token in tokens).decode()) == tokens


@pytest.mark.parametrize("text", WORDS)
def test_every_choice_may_come(text: str, embedded: GrammarTokenizer) -> None:
    matcher = matcher_of(choice(*WORDS), embedded)
    for token in [*embedded.encode(text), embedded.stop_token_ids[0]]:
        assert token in allowed(matcher, embedded.vocab_size)
        assert matcher.accept(token)
    assert matcher.is_terminated()
    assert allowed(matcher, embedded.vocab_size) == set()
    assert not matcher.accept(embedded.stop_token_ids[0])


def test_rollback_crosses_the_end_and_is_refused_beyond_the_start(embedded: GrammarTokenizer) -> None:
    matcher = matcher_of(choice(*WORDS), embedded)
    course, tokens = [allowed(matcher, embedded.vocab_size)], [*embedded.encode("the end"), embedded.stop_token_ids[0]]
    for token in tokens:
        assert matcher.accept(token)
        course.append(allowed(matcher, embedded.vocab_size))
    matcher.rollback(0)
    assert matcher.is_terminated()
    matcher.rollback(len(tokens) - 1)
    assert allowed(matcher, embedded.vocab_size) == course[1]
    with pytest.raises(ValueError, match="cannot take back"):
        matcher.rollback(2)
    matcher.rollback(1)
    assert allowed(matcher, embedded.vocab_size) == course[0]


def test_stop_tokens_are_those_of_the_request(embedded: GrammarTokenizer) -> None:
    other = embedded.encode("x")[0]
    matcher = matcher_of(choice("the end"), embedded, (other,))
    for token in embedded.encode("the end"):
        assert not matcher.accept(other)
        assert matcher.accept(token)
    assert allowed(matcher, embedded.vocab_size) == {other}
    assert matcher.accept(other)


def test_what_is_forced_is_a_segment(embedded: GrammarTokenizer) -> None:
    segmenter, text = Segmenter(embedded), "the end of it"
    matcher = matcher_of(choice(text), embedded)
    assert matcher.forced_bytes() == text.encode()
    assert segmenter.find(matcher, []) == Segment(tuple(embedded.encode(text)), True)
    assert Segmenter(embedded, most_tokens=2).find(matcher, []) == Segment(tuple(embedded.encode(text)[:2]), False)
    first, *_ = embedded.encode(text)
    assert matcher.accept(first)
    assert segmenter.find(matcher, [first]).tokens == tuple(embedded.encode(text)[1:])
    two = matcher_of(choice(text, text + ", all"), embedded)
    assert segmenter.find(two, []) == Segment(tuple(embedded.encode(text)), False)


def test_free_texts_have_none_and_keep_to_it_step_by_step(embedded: GrammarTokenizer) -> None:
    spec = regex("[a-z ]{1,40}")
    assert product_of(spec, embedded) is None
    assert isinstance(grammar_of(spec, embedded).matcher(None, 0), CanonicalMatcher)


def test_a_payload_of_another_tokenizer_with_the_same_texts_is_refused() -> None:
    """Merges decide what is canonical, and the texts of tokens do not tell them."""
    one, other = unsplit(), contractions()
    product = product_of(choice("the world", "the word"), one)
    assert product is not None
    assert isinstance(read(payload_of(product, one), one), ProductGrammar)
    with pytest.raises(ArtifactError, match="other merges"):
        read(payload_of(product, one), other)


@pytest.mark.parametrize("payload", [b"", b"P", b"P\x91\x00", b"?abc"])
def test_a_payload_that_is_none_is_refused(payload: bytes, embedded: GrammarTokenizer) -> None:
    with pytest.raises(ArtifactError):
        backend_named("canonical-xgrammar").load(payload, embedded)


def test_what_is_read_is_what_was_written(embedded: GrammarTokenizer) -> None:
    product = product_of(choice(*WORDS), embedded)
    assert product is not None
    back = read(payload_of(product, embedded), embedded)._index
    assert isinstance(back, TokenIndex)
    assert [back.row(state)[0].tolist() for state in range(len(back))] == [product.row(state)[0].tolist() for state in range(len(product))]
    assert back.accepting.tolist() == product.accepting.tolist()
