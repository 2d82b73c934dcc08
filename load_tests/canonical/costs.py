"""What canonical output costs: tables once a tokenizer, rows and tokens in each step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from grammar_service.backends import Matcher
from grammar_service.backends.canonical.matcher import NARROW, CanonicalMatcher
from grammar_service.canonical.automaton import CanonicalAutomaton, State
from grammar_service.canonical.packed_rows import Row
from grammar_service.canonical.pretokenizers import character_classes
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.answers.answering import Answering, tokens_of
from load_tests.canonical.answers.choosers import COMMON, Choosers
from load_tests.canonical.answers.languages import everyday_specs, loaded
from load_tests.errors import BenchFailed

STEPS = 4000


def table_cost(tokenizer: GrammarTokenizer) -> dict[str, Any]:
    """Processor seconds and bytes of what is made once a tokenizer, nothing remembered."""
    character_classes.members_of.cache_clear()
    character_classes.numerals.cache_clear()
    rules, vocabulary = tokenizer.to_json(), [*tokenizer.vocabulary]
    started = time.process_time()
    automaton = CanonicalAutomaton.of(rules, vocabulary)
    seconds = time.process_time() - started
    return {"part": "table", "seconds": round(seconds, 3), "megabytes": round(automaton.size_bytes / 1e6, 2)}


def step_cost(tokenizer: GrammarTokenizer, text: str) -> dict[str, Any]:
    """Microseconds of processor time, of a row and its AND with a mask, and of a token: the first time along a text, and along it again."""
    automaton = CanonicalAutomaton.of(tokenizer.to_json(), [*tokenizer.vocabulary], rows_bytes=1 << 30)
    tokens = (tokenizer.inner.encode(text.encode()) or ())[:STEPS]
    mask = np.random.default_rng(0).integers(-(2**31), 2**31, (tokenizer.vocab_size + 31) // 32).astype(np.int32)
    figures: dict[str, Any] = {"part": "steps", "tokens": len(tokens)}
    for name in ("cold", "cached"):
        rows, advances = _walked(automaton, tokens, mask)
        figures |= {f"{name}_row_p50_us": _quantile(rows, 50), f"{name}_row_p99_us": _quantile(rows, 99)}
        figures[f"{name}_row_mean_us"] = round(float(np.mean(rows)), 2)
        figures |= {f"{name}_token_p50_us": _quantile(advances, 50), f"{name}_token_p99_us": _quantile(advances, 99)}
    return figures


def narrow_cost(tokenizer: GrammarTokenizer, texts: Sequence[str], seed: int) -> dict[str, Any]:
    """Milliseconds of processor time until a mask of at most NARROW tokens is ours, with all dead ends left out, along answers of everyday
    grammars. Masks of a single token are not made, since what is forced is not drawn."""
    answering, choose = Answering(tokenizer), Choosers(tokenizer, texts, seed).by_name()[COMMON]
    narrow = NarrowMasks(tokenizer.vocab_size)
    for spec in everyday_specs(seed).values():
        answering.answer(loaded(spec, tokenizer), choose, narrow.look)
    return {
        "part": "narrow",
        "masks": len(narrow.spent),
        "tokens_mean": round(float(np.mean(narrow.tokens)), 1),
        "p50_ms": round(float(np.median(narrow.spent)), 4),
        "p99_ms": round(float(np.percentile(narrow.spent, 99)), 4),
    }


class NarrowMasks:
    """What pruning takes of each narrow mask that a matcher comes to, in `spent`, and how many `tokens` there were to look at."""

    def __init__(self, vocab_size: int) -> None:
        self._mask = torch.zeros(1, (vocab_size + 31) // 32, dtype=torch.int32)
        self.spent: list[float] = []
        self.tokens: list[int] = []

    def look(self, matcher: Matcher) -> None:
        """Its row has been made before."""
        if not isinstance(matcher, CanonicalMatcher) or matcher.banned or matcher.has_fallen_back:
            return
        matcher.inner.fill(self._mask, 0)
        plain = self._mask.clone()
        matcher.bound(self._mask, 0)
        count = len(tokens_of(self._mask.numpy()[0]))
        if not 1 < count <= NARROW:
            return
        matcher.prunes = True
        began = time.thread_time_ns()
        matcher.bound(plain, 0)
        self.spent.append((time.thread_time_ns() - began) / 1e6)
        self.tokens.append(count)
        matcher.prunes = False


def forbidden_successors(automaton: CanonicalAutomaton, tokens: Sequence[int]) -> dict[str, Any]:
    """How many tokens may not follow a token inside of a piece, over all tokens."""
    counts = [len(np.unique(automaton.pairs.forbidden(token))) for token in tokens]
    most = int(np.argmax(counts))
    return {
        "part": "forbidden",
        "tokens": len(counts),
        "mean": round(float(np.mean(counts)), 1),
        "median": float(np.median(counts)),
        "most": counts[most],
        "most_behind": int(tokens[most]),
    }


def _walked(automaton: CanonicalAutomaton, tokens: Sequence[int], mask: Row) -> tuple[list[float], list[float]]:
    rows: list[float] = []
    advances: list[float] = []
    state: State | None = automaton.start
    for token in tokens:
        if state is None:
            raise BenchFailed("a canonical sequence is refused")
        started = time.thread_time_ns()
        np.bitwise_and(mask, automaton.row(state))
        made = time.thread_time_ns()
        state = automaton.after(state, token)
        advances.append((time.thread_time_ns() - made) / 1000)
        rows.append((made - started) / 1000)
    return rows, advances


def _quantile(values: list[float], percent: float) -> float:
    return round(float(np.percentile(values, percent)), 2)
