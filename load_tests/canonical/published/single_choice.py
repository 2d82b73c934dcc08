"""How many tokens of everyday JSON are decided before a model is asked: by the grammar's masks, by canonical ones, by forced segments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from grammar_service.backends import Matcher, select_backend
from grammar_service.backends.canonical.matcher import CanonicalGrammar
from grammar_service.segments import Segmenter
from grammar_service.spec import COMPACT, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.published.row import figure
from load_tests.errors import BenchFailed
from model_service.embedded.documents import Value
from model_service.embedded.tasks import exercises

LAYOUTS = {COMPACT: (",", ":"), STANDARD: (", ", ": ")}
GRAMMAR, CANONICAL, SEGMENTS, TOGETHER = KINDS = ("the grammar's masks", "canonical masks", "segments", "segments or canonical masks")
PUBLISHED = {GRAMMAR: 4.0, CANONICAL: 20.0}
"""Percent, of function calls, in the notebook."""
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def single_rows(tokenizer: GrammarTokenizer, texts: int, seed: int) -> Iterator[dict[str, Any]]:
    """Percent of the tokens of so many objects, in two layouts."""
    objects = [exercise.expected for exercise in islice(exercises(seed, held_out=True), 4 * texts) if _is_plain(exercise.expected)]
    segmenter = Segmenter(tokenizer)
    for layout in LAYOUTS:
        counted: Counter[str] = Counter()
        for values in objects[:texts]:
            counted += _counted(values, layout, tokenizer, segmenter)
        for kind in KINDS:
            name = f"tokens with a single choice, by {kind}"
            yield figure(name, f"tekken, {layout}", PUBLISHED.get(kind), 100 * counted[kind] / counted["tokens"], "%")


def schema_of(values: dict[str, Value | None]) -> dict[str, Any]:
    """What an object with these values is one of: its names, and the types of their values."""
    properties = {name: _type(value) for name, value in values.items()}
    return {"type": "object", "properties": properties, "required": [*values], "additionalProperties": False}


def _type(value: Value | None) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}} if isinstance(value, list) else {"type": _TYPES[type(value)]}


def _is_plain(values: dict[str, Value | None]) -> bool:
    return all(isinstance(value, list) or type(value) in _TYPES for value in values.values())


def _counted(values: dict[str, Value | None], layout: str, tokenizer: GrammarTokenizer, segmenter: Segmenter) -> Counter[str]:
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema_of(values)), layout)
    tokens = tokenizer.inner.encode(json.dumps(values, separators=LAYOUTS[layout]).encode())
    if tokens is None:
        raise BenchFailed("a text has no tokens")
    backend = select_backend(spec)
    grammar = backend.load(backend.compile(spec, tokenizer).data, tokenizer)
    canonical = CanonicalGrammar(grammar, tokenizer.canonical, tokenizer.stop_token_ids).matcher(None, len(tokens))
    by_grammar = single(grammar.matcher(None, len(tokens)), tokens, tokenizer.vocab_size)
    by_canonical = single(canonical, tokens, tokenizer.vocab_size)
    by_segments = _segments(grammar.matcher(None, len(tokens)), tokens, segmenter)
    return Counter(
        {
            "tokens": len(tokens),
            GRAMMAR: sum(by_grammar),
            CANONICAL: sum(by_canonical),
            SEGMENTS: sum(by_segments),
            TOGETHER: sum(one or other for one, other in zip(by_canonical, by_segments, strict=True)),
        }
    )


def single(matcher: Matcher, tokens: Sequence[int], vocab_size: int) -> list[bool]:
    """Of each token, whether the mask before it leaves nothing else. Raises BenchFailed: one is refused."""
    row = torch.zeros(1, (vocab_size + 31) // 32, dtype=torch.int32)
    found: list[bool] = []
    for token in tokens:
        matcher.fill(row, 0)
        found.append(int(np.bitwise_count(row.numpy().view(np.uint32)).sum()) == 1)
        if not matcher.accept(token):
            raise BenchFailed(f"token {token} is refused behind {len(found) - 1} others of a valid text")
    return found


def _segments(matcher: Matcher, tokens: Sequence[int], segmenter: Segmenter) -> list[bool]:
    """Of each token, whether it lies in a segment that was forced."""
    forced: list[bool] = []
    while len(forced) < len(tokens):
        at = len(forced)
        segment = segmenter.find(matcher, tokens[:at]).tokens
        if segment != tuple(tokens[at : at + len(segment)]):
            raise BenchFailed(f"a segment behind {at} tokens is not the tokenizer's own")
        taken = segment or tokens[at : at + 1]
        forced += [bool(segment)] * len(taken)
        for token in taken:
            matcher.accept(token)
    return forced
