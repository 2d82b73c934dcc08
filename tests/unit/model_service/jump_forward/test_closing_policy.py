"""At which token an answer must end to be complete in time."""

from __future__ import annotations

import itertools
import json
import random
import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import Matcher
from grammar_service.segments import Segmenter
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.corpus.random_schemas import random_schema
from model_service.jump_forward.closing_policy import MARGIN, MOST_TOKENS, URGENT, ClosingPolicy
from tests.driving import allowed, grammar_of, schema_spec

LONG: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "more": {
            "type": "object",
            "properties": {f"name_{index}": {"type": "integer"} for index in range(2000)},
            "required": [f"name_{index}" for index in range(2000)],
        },
    },
    "required": ["text"],
}


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def answer(matcher: Matcher, tokenizer: GrammarTokenizer, segmenter: Segmenter, policy: ClosingPolicy, most: int, seed: int) -> str:
    """A random one, whose forced text comes behind each sampled token, as an engine makes it."""
    choose, tokens = random.Random(seed), list[int]()
    while len(tokens) < most:
        tokens += [token for token in segmenter.find(matcher, tokens).tokens[: most - len(tokens)] if matcher.accept(token)]
        if len(tokens) == most:
            break
        sampled = choose.choice(sorted(allowed(matcher, tokenizer.vocab_size)))
        if (ending := policy.ending("one", matcher, len(tokens), [sampled], most - len(tokens))) is not None:
            tokens += ending
            break
        if sampled in tokenizer.stop_token_ids:
            break
        assert matcher.accept(sampled)
        tokens.append(sampled)
    policy.forget("one")
    assert len(tokens) <= most
    return b"".join(tokenizer.vocabulary[token] for token in tokens).decode("utf-8", "replace")


def test_random_answers_under_random_schemas_are_valid_within_their_tokens(tokenizer: GrammarTokenizer) -> None:
    policy, segmenter = ClosingPolicy(tokenizer), Segmenter(tokenizer)
    for seed in range(40):
        schema = random_schema(random.Random(seed))
        grammar = grammar_of(schema_spec(schema), tokenizer)
        shortest = policy.search.find(grammar.matcher(None, 0), MOST_TOKENS)
        assert shortest is not None
        most = len(shortest) + MARGIN + 1 + seed
        text = answer(grammar.matcher(None, 0), tokenizer, segmenter, policy, most, seed)
        Draft202012Validator(schema).validate(json.loads(text))


def test_so_are_those_whose_end_is_long_when_others_have_taken_the_time(tokenizer: GrammarTokenizer) -> None:
    words = {"type": "object", "properties": {f"member_{index}": {"type": "string"} for index in range(20)}}
    schema = {**words, "required": [*words["properties"]], "additionalProperties": False}
    policy, segmenter, grammar = (
        ClosingPolicy(tokenizer, clock=lambda: 0.0),
        Segmenter(tokenizer),
        grammar_of(schema_spec(schema), tokenizer),
    )
    shortest = policy.search.find(grammar.matcher(None, 0), MOST_TOKENS)
    assert shortest is not None
    assert len(shortest) > URGENT
    for seed in range(12):
        text = answer(grammar.matcher(None, 0), tokenizer, segmenter, policy, len(shortest) + MARGIN + 1 + seed, seed)
        Draft202012Validator(schema).validate(json.loads(text))


def test_an_answer_is_not_closed_early_for_a_member_whose_end_is_too_long_to_be_looked_for(tokenizer: GrammarTokenizer) -> None:
    policy, matcher = ClosingPolicy(tokenizer), grammar_of(schema_spec(LONG), tokenizer).matcher(None, 0)
    begun = list(tokenizer.inner.encode(b'{"text": "a", "mor') or ())
    for count, token in enumerate(begun):
        assert policy.ending("one", matcher, count, [token], 100_000 - count) is None
        assert matcher.accept(token)


def test_an_answer_is_not_closed_early_for_a_pattern_that_the_search_goes_round_in(tokenizer: GrammarTokenizer) -> None:
    round_ = {"type": "object", "properties": {"a": {"type": "integer"}, "code": {"type": "string", "pattern": "^([a-y]{2})*z$"}}}
    grammar = grammar_of(schema_spec({**round_, "required": ["a"], "additionalProperties": False}), tokenizer)
    policy, matcher = ClosingPolicy(tokenizer, clock=itertools.count().__next__), grammar.matcher(None, 0)
    for count, token in enumerate(tokenizer.inner.encode(b'{"a": 1, "code": "abcdz"}') or ()):
        assert policy.ending("one", matcher, count, [token], 1000 - count) is None
        assert matcher.accept(token)


def test_all_requests_together_take_a_share_of_the_time(tokenizer: GrammarTokenizer) -> None:
    policy = ClosingPolicy(tokenizer, clock=lambda: 0.0)
    grammar = grammar_of(schema_spec(LONG), tokenizer)
    [first] = tokenizer.inner.encode(b"{") or ()
    began = time.thread_time()
    for number in range(200):
        assert policy.ending(str(number), grammar.matcher(None, 0), 0, [first], 6000) is None
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("room", [1, 2, 3])
def test_what_ends_an_answer_by_itself_is_taken_however_little_room_there_is(room: int, tokenizer: GrammarTokenizer) -> None:
    policy, matcher = ClosingPolicy(tokenizer), grammar_of(schema_spec({"type": "array", "maxItems": 0}), tokenizer).matcher(None, 0)
    opened, closed = (tokenizer.byte_tokens[byte] for byte in b"[]")
    assert matcher.accept(opened)
    assert policy.ending("one", matcher, 1, [closed], room) is None
    assert matcher.accept(closed)
    assert policy.ending("one", matcher, 2, [tokenizer.stop_token_ids[0]], room) is None
