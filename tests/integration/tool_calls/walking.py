"""Random answers of a grammar of calls."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from grammar_service.backends import CompiledGrammar
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import allowed
from tests.tokenizers.tiny_tokenizer import STOP_ID

LONGEST = 3000
"""Tokens of an answer."""
_CLOSING = (b"}", b"]", b")", b'"', b"'")


def walk(grammar: CompiledGrammar, vocabulary: GrammarTokenizer, seed: int, likely: bytes, at_first: float = 0.1) -> list[int]:
    """The tokens of a random answer, which likes marks (its first tokens with the probability `at_first`) and texts of the characters
    `likely`, and ends values."""
    choose, matcher, texts = random.Random(seed), grammar.matcher(None, 0), vocabulary.vocabulary
    marks = set(vocabulary.special_tokens.values())
    liked = {token for token, text in enumerate(texts) if text and set(text) <= set(likely)}
    tokens: list[int] = []
    while len(tokens) < LONGEST:
        options = allowed(matcher, vocabulary.vocab_size)
        if STOP_ID in options and (len(options) == 1 or choose.random() < 0.5):
            return tokens
        if options & marks and choose.random() < (at_first if len(tokens) < 12 else 0.1 if len(tokens) < LONGEST // 4 else 0.9):
            token = choose.choice(sorted(options & marks))
        elif len(tokens) > 200 and (ends := [one for one in options if texts[one] in _CLOSING]):
            token = choose.choice(ends)
        else:
            plain = options - marks - {STOP_ID} or options - {STOP_ID}
            pool = sorted(plain & liked if plain & liked and choose.random() < 0.7 else plain)
            token = choose.choice([one for one in pool if texts[one].isascii()] or pool)
        assert matcher.accept(token)
        tokens.append(token)
    raise AssertionError(f"the walk does not end: {b''.join(texts[token] for token in tokens)!r}")


def check_calls(answers: Iterable[list[tuple[str, str]]], schemas: Mapping[str, Any], single: bool) -> None:
    """Each answer has calls, whose arguments their schemas allow; all tools are called, and several at once unless `single`."""
    called, most = set[str](), 0
    for calls in answers:
        assert calls
        for name, arguments in calls:
            Draft202012Validator(schemas[name]).validate(json.loads(arguments))
        called |= {name for name, _ in calls}
        most = max(most, len(calls))
    assert called == schemas.keys()
    assert (most == 1) == single
