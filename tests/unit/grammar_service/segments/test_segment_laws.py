"""What holds for the forced segments of all grammars, tokenizers and backends."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends.canonical.matcher import CanonicalGrammar
from grammar_service.segments import Segmenter
from grammar_service.spec import FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of, schema_spec
from tests.random_languages import random_language
from tests.segment_walk import follow, walk_of, wander
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer
from tests.tokenizers.trained_tokenizers import contractions, digits_in_threes, sentences, unsplit, words

Made = tuple[GrammarTokenizer, Segmenter]
TOKENIZERS: dict[str, Callable[[], GrammarTokenizer]] = {
    "embedded": lambda: GrammarTokenizer.load(EMBEDDED_WEIGHTS),
    "tiny": lambda: GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE),
    **{make.__name__: make for make in (digits_in_threes, contractions, unsplit, sentences, words)},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "size": {"enum": ["small", "smaller", "big"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "size", "tags"],
    "additionalProperties": False,
}
BACKENDS = ["xgrammar", "llguidance"]
TEXTS = st.text("ab AZ01.,:'\"/\\\né東🎉-", max_size=10)
few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", params=list(TOKENIZERS))
def made(request: pytest.FixtureRequest) -> Made:
    tokenizer = TOKENIZERS[request.param]()
    return tokenizer, Segmenter(tokenizer)


@pytest.fixture(scope="module")
def embedded() -> Made:
    tokenizer = TOKENIZERS["embedded"]()
    return tokenizer, Segmenter(tokenizer)


@given(seed=st.integers(0, 2**40))
@few
def test_segments_have_the_tokens_of_every_text_that_goes_on_from_there_on_both_backends_alike(seed: int, made: Made) -> None:
    language = random_language(random.Random(seed))
    grammars = [grammar_of(GrammarSpec(GrammarKind.REGEX, language.regex), made[0], backend) for backend in BACKENDS]
    for text in {language.text() for _ in range(4)}:
        one, other = (follow(walk_of(grammar, *made), text) for grammar in grammars)
        assert one == other


@given(seed=st.integers(0, 2**40))
@few
@pytest.mark.parametrize("backend", BACKENDS)
def test_canonical_grammars_have_the_segments_of_plain_ones(seed: int, backend: str, embedded: Made) -> None:
    """Their masks do not say which texts may come next."""
    language = random_language(random.Random(seed))
    plain = grammar_of(GrammarSpec(GrammarKind.REGEX, language.regex), embedded[0], backend)
    canonical = CanonicalGrammar(plain, embedded[0].canonical, embedded[0].stop_token_ids)
    for text in {language.text() for _ in range(4)}:
        assert follow(walk_of(canonical, *embedded), text) == follow(walk_of(plain, *embedded), text)


@pytest.mark.parametrize("backend", BACKENDS)
@given(seed=st.integers(0, 2**40))
@few
def test_segments_are_forced_whatever_tokens_stand_before_them(backend: str, seed: int, made: Made) -> None:
    choose = random.Random(seed)
    grammar = grammar_of(GrammarSpec(GrammarKind.REGEX, random_language(choose).regex), made[0], backend)
    wander(walk_of(grammar, *made), choose)


@pytest.mark.parametrize("whitespace", [STANDARD, FLEXIBLE])
def test_json_is_followed_as_json_dumps_writes_it(whitespace: str, made: Made) -> None:
    grammars = [grammar_of(schema_spec(SCHEMA, whitespace), made[0], backend) for backend in BACKENDS]

    @given(name=TEXTS, age=st.integers(), size=st.sampled_from(["small", "smaller", "big"]), tags=st.lists(TEXTS, max_size=3))
    @few
    def check(name: str, age: int, size: str, tags: list[str]) -> None:
        text = json.dumps({"name": name, "age": age, "size": size, "tags": tags}, ensure_ascii=False)
        for grammar in grammars:
            follow(walk_of(grammar, *made), text)

    check()
