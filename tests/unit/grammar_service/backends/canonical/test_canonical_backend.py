"""Specs that are `canonical`: which backend serves them, under which key, and with which tokenizers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from grammar_service.backends import backend_named, select_backend
from grammar_service.errors import UnsupportedGrammar
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.spec import COMPACT, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed, grammar_of, schema_spec
from tests.tokenizers.trained_tokenizers import contractions, sentences, words

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SPECS = [
    schema_spec(SCHEMA),
    schema_spec(SCHEMA, COMPACT),
    GrammarSpec(GrammarKind.REGEX, "[a-z ]+"),
    GrammarSpec(GrammarKind.CHOICE, '["left", "right"]'),
    GrammarSpec(GrammarKind.EBNF, 'root ::= "a" | "b" root'),
    GrammarSpec(GrammarKind.LARK, 'start: "a" start | "b"'),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind}-{spec.whitespace}")
def test_a_canonical_spec_has_a_key_of_its_own_and_no_stopgap(spec: GrammarSpec) -> None:
    plain, canonical = (resolve(replace(spec, canonical=flag), Limits(), "f") for flag in (False, True))
    assert canonical.backend == f"canonical-{plain.backend}"
    assert canonical.key != plain.key
    assert canonical.stopgap is None
    assert canonical.library_source == plain.library_source


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind}-{spec.whitespace}")
def test_its_grammar_allows_less_than_the_plain_one_and_something(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> None:
    plain, canonical = (grammar_of(replace(spec, canonical=flag), tokenizer).matcher(None, 8) for flag in (False, True))
    first = allowed(canonical, tokenizer.vocab_size)
    assert first
    assert first <= allowed(plain, tokenizer.vocab_size)


def test_a_tokenizer_that_is_not_followed_is_refused_with_the_reason() -> None:
    spec = replace(SPECS[2], canonical=True)
    with pytest.raises(UnsupportedGrammar, match="its pre-tokenizer is not one regex over bytes"):
        select_backend(spec).compile(spec, contractions(add_prefix_space=True))


@pytest.mark.parametrize("make", [sentences, words])
def test_merges_of_characters_are_followed(make: Callable[[], GrammarTokenizer]) -> None:
    tokenizer = make()
    matcher = grammar_of(replace(SPECS[2], canonical=True), tokenizer).matcher(None, 8)
    for token in tokenizer.inner.encode(b"foo bar") or ():
        assert matcher.accept(token)
    assert matcher.accept(tokenizer.stop_token_ids[0])


def test_a_version_of_the_other_backend_is_one_of_ours() -> None:
    for name in ("xgrammar", "llguidance"):
        assert backend_named(name).version in backend_named(f"canonical-{name}").version
