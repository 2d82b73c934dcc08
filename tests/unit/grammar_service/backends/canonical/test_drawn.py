"""Tokens that were drawn, and what is forced behind them, before they are accepted."""

from __future__ import annotations

from random import Random

import pytest
import torch

from grammar_service.backends.batch_fill import BatchFiller
from grammar_service.backends.canonical.matcher import CanonicalMatcher
from grammar_service.backends.protocol import accepted_prefix
from grammar_service.segments import Segment, Segmenter
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed
from tests.unit.grammar_service.backends.canonical.matchers import BACKENDS, matcher_of, regex


def leads_on(matcher: CanonicalMatcher, token: int, tokenizer: GrammarTokenizer) -> bool:
    """A token that was drawn, by the mask behind it."""
    if not matcher.draw(token):
        return True
    mask = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    matcher.inner.fill(mask, 0)
    return matcher.settle(mask.numpy()[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_tokens_that_are_drawn_and_taken_are_those_of_masks_that_leave_dead_ends_out(backend: str, embedded: GrammarTokenizer) -> None:
    """What is refused once drawn is what masks leave out beforehand, and the mask behind a draw is the one that is made without it."""
    pattern = "(the|that|then)( end| ends|ing)?( {1,3}|\\.)[a-c]{2}"
    looked, told = (matcher_of(regex(pattern), embedded, backend) for _ in range(2))
    told.prunes = False
    chance, refused = Random(8), 0
    for _ in range(12):
        looked.reset()
        told.reset()
        while not told.is_terminated():
            offered, drawn = allowed(told, embedded.vocab_size), allowed(looked, embedded.vocab_size)
            assert drawn <= offered
            for token in sorted(offered - drawn):
                assert not leads_on(told, token, embedded)
                refused += 1
            assert allowed(told, embedded.vocab_size) == drawn
            token = chance.choice(sorted(drawn))
            assert leads_on(told, token, embedded)
            assert told.accept(token)
            assert looked.accept(token)
    assert refused
    assert not told.has_fallen_back


def test_what_was_drawn_and_not_accepted_is_taken_back(embedded: GrammarTokenizer) -> None:
    matcher = matcher_of(regex("[a-z ]+"), embedded, "xgrammar")
    first, second = embedded.encode("one and")
    before = allowed(matcher, embedded.vocab_size)
    assert leads_on(matcher, first, embedded)
    matcher.undraw()
    assert allowed(matcher, embedded.vocab_size) == before
    assert leads_on(matcher, first, embedded)
    other = embedded.encode("x")[0]
    assert matcher.accept(other)
    matcher.rollback(1)
    assert allowed(matcher, embedded.vocab_size) == before
    assert leads_on(matcher, first, embedded)
    assert matcher.accept(first)
    assert leads_on(matcher, second, embedded)
    assert matcher.accept(second)
    matcher.rollback(2)
    assert allowed(matcher, embedded.vocab_size) == before


def behind(matcher: CanonicalMatcher, token: int, emitted: list[int], segmenter: Segmenter, tokenizer: GrammarTokenizer) -> Segment | None:
    """What is forced behind a token that was drawn, as an engine looks at both at once; None: it leads nowhere."""
    if not matcher.draw(token):
        return segmenter.find(matcher, emitted)
    segment = segmenter.find(matcher, [*emitted, token])
    matcher.draw_on(segment.tokens)
    mask = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    matcher.inner.fill(mask, 0)
    return segment if matcher.settle(mask.numpy()[0]) else None


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_forced_behind_a_draw_is_looked_at_with_it(backend: str, embedded: GrammarTokenizer) -> None:
    """The same tokens lead nowhere, the same are forced, and the mask behind all of them is the one that is made without it."""
    pattern = "(the|that|then)( end| ends|ing)?( {1,3}|\\.), which is( it)? to say {1,2}[a-c]{2}"
    told, looked = (matcher_of(regex(pattern), embedded, backend) for _ in range(2))
    told.prunes = False
    chance, segmenter, refused, forced = Random(9), Segmenter(embedded), 0, 0
    for _ in range(12):
        looked.reset()
        told.reset()
        emitted: list[int] = []
        while not told.is_terminated():
            offered, drawn = allowed(told, embedded.vocab_size), allowed(looked, embedded.vocab_size)
            for token in sorted(offered - drawn):
                assert behind(told, token, emitted, segmenter, embedded) is None
                refused += 1
            token = chance.choice(sorted(drawn))
            segment = behind(told, token, emitted, segmenter, embedded)
            assert segment is not None
            assert all(map(told.accept, [token, *segment.tokens]))
            assert looked.accept(token)
            assert looked.is_terminated() or segment == segmenter.find(looked, [*emitted, token])
            assert all(map(looked.accept, segment.tokens))
            emitted += [token, *segment.tokens]
            forced += len(segment.tokens)
    assert refused
    assert forced
    assert not told.has_fallen_back


def test_of_what_is_forced_behind_a_draw_a_part_may_be_accepted(embedded: GrammarTokenizer) -> None:
    """A request ends in the middle of it, or goes on otherwise."""
    matcher, segmenter = matcher_of(regex("[ab], as was said before"), embedded, "xgrammar"), Segmenter(embedded)
    first = embedded.encode("a")[0]
    segment = behind(matcher, first, [], segmenter, embedded)
    assert segment is not None
    assert len(segment.tokens) > 2
    assert all(map(matcher.accept, [first, *segment.tokens[:2]]))
    matcher.undraw()
    assert matcher.accept(segment.tokens[2])
    matcher.rollback(4)
    assert allowed(matcher, embedded.vocab_size) == {embedded.encode("a")[0], embedded.encode("b")[0]}


def test_the_mask_behind_a_draw_stays_known_while_others_look_further(embedded: GrammarTokenizer) -> None:
    """As a segment is looked for, after each token."""
    matcher = matcher_of(regex("[a-z ]+"), embedded, "xgrammar")
    first, second = embedded.encode("one and")
    assert leads_on(matcher, first, embedded)
    assert matcher.accept(first)
    for looked_at in ([], [second]):
        assert accepted_prefix(matcher, looked_at) == len(looked_at)
        assert matcher.is_filled
    known = allowed(matcher, embedded.vocab_size)
    matcher.rollback(1)
    assert not matcher.is_filled
    assert matcher.accept(first)
    assert allowed(matcher, embedded.vocab_size) == known


def test_a_batch_is_filled_with_masks_that_are_known_already(embedded: GrammarTokenizer) -> None:
    filler = BatchFiller(embedded, threads=1)
    drawn, plain = (matcher_of(regex("[a-z ]+"), embedded, "xgrammar") for _ in range(2))
    (token,) = embedded.encode("one")
    assert leads_on(drawn, token, embedded)
    assert drawn.accept(token)
    assert plain.accept(token)
    assert (drawn.is_filled, plain.is_filled) == (True, False)
    masks = torch.zeros(2, (embedded.vocab_size + 31) // 32, dtype=torch.int32)
    filler.fill([drawn, plain], masks, [0, 1])
    assert masks[0].any()
    assert torch.equal(masks[0], masks[1])
