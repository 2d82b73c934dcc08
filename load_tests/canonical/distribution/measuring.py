"""The rows of the experiment: one a set of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from transformers import LlamaForCausalLM

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.distribution.arms import Arms, arms_of
from load_tests.canonical.distribution.figures import ARMS, CANONICAL, EXACT, PLAIN, ROW, SPELLED, variation
from load_tests.canonical.distribution.token_tree import Floats, Tokens, TokenTree
from load_tests.canonical.distribution.value_sets import Question
from load_tests.canonical.distribution.walks import Walk, Walked, along, conditional, masked, run
from load_tests.errors import BenchFailed

LEAST_MASS = 1e-6
"""Of the likeliest text's own sequence: what the model says behind a sequence that has come to less is not asked."""
LEAST_SHARE = 1e-7
"""Of a mask's draws, the same."""


def set_rows(question: Question, model: LlamaForCausalLM, tokenizer: GrammarTokenizer, least: float) -> Iterator[dict[str, Any]]:
    """Both sets of one question, as long as the model gives a text of theirs at least `least`: `left_out` says that it does not."""
    tree = TokenTree(model, question.context)
    arms = {kind: arms_of(texts, tokenizer) for kind, texts in question.sets.items()}
    written = {kind: [_sequence(text, tokenizer) for text in texts] for kind, texts in question.sets.items()}
    own = {kind: along(tree, sequences) for kind, sequences in written.items()}
    kept = [kind for kind in question.sets if own[kind].max() >= least]
    walks: dict[tuple[str, str], Walk] = {}
    for kind in kept:
        walks |= {(kind, name): walk for name, walk in _walks(tree, arms[kind], question.sets[kind], tokenizer, own[kind])}
    found = run(tree, walks)
    for kind in question.sets:
        head = {"set": kind, "field": question.field}
        if kind in kept:
            yield head | _figures({name: found[kind, name] for name in (EXACT, *ARMS)}, own[kind])
        else:
            yield head | {"left_out": True}


def _sequence(text: str, tokenizer: GrammarTokenizer) -> Tokens:
    found = tokenizer.inner.encode(text.encode())
    if found is None or not tokenizer.canonical.accepts(found):
        raise BenchFailed(f"{text!r} has no canonical tokens")
    return tuple(found)


def _walks(tree: TokenTree, arms: Arms, texts: Sequence[str], tokenizer: GrammarTokenizer, own: Floats) -> Iterator[tuple[str, Walk]]:
    raw, vocabulary = [text.encode() for text in texts], tokenizer.vocabulary
    yield EXACT, conditional(tree, arms.plain.index, raw, vocabulary, LEAST_MASS * float(own.max()))
    yield PLAIN, masked(tree, arms.plain, raw, vocabulary, LEAST_SHARE)
    yield ROW, masked(tree, arms.row, raw, vocabulary, LEAST_SHARE)
    yield CANONICAL, masked(tree, arms.canonical, raw, vocabulary, LEAST_SHARE)


def _figures(found: dict[str, Walked], own: Floats) -> dict[str, Any]:
    """Total variation from the exact conditional, and what bounds the error of that."""
    exact = found[EXACT]
    likeliest = int(np.argmax(exact.mass))
    shares = {name: found[name].shares for name in ARMS} | {SPELLED: own / own.sum()}
    return {
        "mass": _short(exact.mass.sum()),
        "other_spellings": _short(max(0.0, 1 - own.sum() / exact.mass.sum())),
        "pruned": _short(exact.pruned / exact.mass.sum()),
        "pruned_shares": _short(max(found[name].pruned for name in ARMS)),
        "starved": _short(found[ROW].starved),
        **{name: _short(variation(share, exact.shares)) for name, share in shares.items()},
        "another_is_likeliest": ", ".join(name for name in ARMS if np.argmax(shares[name]) != likeliest),
    }


def _short(value: float) -> float:
    return float(f"{value:.5g}")
