"""Canonical matchers of a constraint, on the libraries that they may stand around."""

from __future__ import annotations

from grammar_service.backends.canonical.matcher import CanonicalGrammar, CanonicalMatcher
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import grammar_of

BACKENDS = ["xgrammar", "llguidance"]


def matcher_of(spec: GrammarSpec, tokenizer: GrammarTokenizer, backend: str) -> CanonicalMatcher:
    return CanonicalGrammar(grammar_of(spec, tokenizer, backend), tokenizer.canonical, tokenizer.stop_token_ids).matcher(None, 8)


def regex(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text)
