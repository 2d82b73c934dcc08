"""Forced segments on a large vocabulary of a real model."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grammar_service.segments import Segmenter
from grammar_service.spec import COMPACT, FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tekken import tekken_folder
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of, schema_spec
from tests.random_languages import random_language
from tests.segment_walk import follow, walk_of, wander

Made = tuple[GrammarTokenizer, Segmenter]
BACKENDS = ["xgrammar", "llguidance"]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "size": {"enum": ["small", "smaller", "big"]}},
    "required": ["name", "age", "size"],
    "additionalProperties": False,
}
ADA = {"name": "Ada", "age": 36, "size": "smaller"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    tokenizer = GrammarTokenizer.load(tekken_folder(tmp_path_factory.mktemp("cache")))
    return tokenizer, Segmenter(tokenizer)


@given(seed=st.integers(0, 2**40))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_segments_have_the_tokens_of_every_text_that_goes_on_from_there(seed: int, made: Made) -> None:
    choose = random.Random(seed)
    language = random_language(choose)
    grammar = grammar_of(GrammarSpec(GrammarKind.REGEX, language.regex), made[0], "llguidance")
    for text in {language.text() for _ in range(4)}:
        follow(walk_of(grammar, *made), text)
    wander(walk_of(grammar, *made), choose)


@pytest.mark.parametrize("whitespace", [STANDARD, FLEXIBLE])
def test_backends_find_the_same_segments_of_json(whitespace: str, made: Made) -> None:
    grammars = [grammar_of(schema_spec(SCHEMA, whitespace), made[0], backend) for backend in BACKENDS]
    one, other = (follow(walk_of(grammar, *made), json.dumps(ADA)) for grammar in grammars)
    assert one == other


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_schema_forces_takes_few_free_tokens(backend: str, made: Made) -> None:
    walk = walk_of(grammar_of(schema_spec(SCHEMA), made[0], backend), *made)
    found = follow(walk, json.dumps(ADA))
    assert [walk.text(segment.tokens) for segment in found] == [b'{"name":', b' "age":', b' "size": "', b'"}']


@pytest.mark.parametrize("letter", ["ה", "あ", "é"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_long_texts_whose_tokens_cross_characters_are_soon_judged(letter: str, backend: str, made: Made) -> None:
    spec = GrammarSpec(GrammarKind.CHOICE, json.dumps([letter * 1500 + "a", letter * 1500 + "b"]))
    walk = walk_of(grammar_of(spec, made[0], backend), *made)
    walk.segment()
    assert (letter * 1500).encode().startswith(walk.text(walk.tokens))


@pytest.mark.parametrize("whitespace", [STANDARD, COMPACT])
@pytest.mark.parametrize("end", ["", "b"])
def test_canonical_masks_have_the_tokenizers_own_tokens_where_text_is_forced(whitespace: str, end: str, made: Made) -> None:
    """Behind the last item `"}]` is forced, whose own sequence is not how that of a longer text begins."""
    item = {"type": "object", "properties": {"sky": {"enum": ["snow", "rain"]}}, "required": ["sky"], "additionalProperties": False}
    items = {"type": "array", "items": item, "minItems": 1, "maxItems": 1}
    schema = {"type": "object", "properties": {"a": items, "b": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    grammar = grammar_of(replace(schema_spec(schema, whitespace), canonical=True), made[0], "canonical-llguidance")
    matcher = grammar.matcher(None, 8)
    value = {"a": [{"sky": "snow"}], **({"b": ""} if end else {})}
    for token in made[0].encode(json.dumps(value, separators=(",", ":") if whitespace == COMPACT else None)):
        assert token in allowed(matcher, made[0].vocab_size)
        assert matcher.accept(token)
