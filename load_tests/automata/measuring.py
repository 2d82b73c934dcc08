"""What one grammar costs on one backend: processor time of the thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, TypeVar

import numpy as np
import torch

from grammar_service.backends import Backend, CompiledGrammar
from grammar_service.backends.automata.grammar import AutomataGrammar
from grammar_service.errors import GrammarError
from grammar_service.packing import compress
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

WALKS, MOST_TOKENS = 40, 40
T = TypeVar("T")


@dataclass(frozen=True)
class Sides:
    """One backend as those who compile have it, and as those who load: what the first has compiled, they have never seen."""

    compiling: Backend
    loading: Sequence[Backend]


def cost(sides: Sides, spec: GrammarSpec, tokenizer: GrammarTokenizer, seed: int) -> dict[str, Any]:
    """Milliseconds to compile (`compile`) and to be ready (`load`: reading and the first mask), microseconds of masks and of tokens in
    random walks, bytes of the payload when it is packed and of the grammar in memory. `refused`: why there is none; `is_automaton`: it is
    one of ours."""
    try:
        payload, compile_ms = _timed(lambda: sides.compiling.compile(spec, tokenizer))
    except GrammarError as error:
        return {"refused": error.message[:120]}
    row = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)

    def ready(backend: Backend) -> CompiledGrammar:
        grammar = backend.load(payload.data, tokenizer)
        grammar.matcher(None, 0).fill(row, 0)
        return grammar

    loaded = [_timed(partial(ready, backend)) for backend in sides.loading]
    grammar, load_ms = loaded[0][0], float(np.median([spent for _, spent in loaded]))
    masks, tokens = _walked(grammar, tokenizer, seed)
    return {
        "is_automaton": isinstance(grammar, AutomataGrammar),
        "compile_ms": round(compile_ms, 2),
        "load_ms": round(load_ms, 2),
        "mask_p50_us": _quantile(masks, 50),
        "mask_p99_us": _quantile(masks, 99),
        "token_p50_us": _quantile(tokens, 50),
        "payload_bytes": len(compress(payload.data)),
        "memory_bytes": grammar.size_bytes,
    }


def _walked(grammar: CompiledGrammar, tokenizer: GrammarTokenizer, seed: int) -> tuple[list[float], list[float]]:
    """Every mask and token of WALKS walks, the first time that each is come to included."""
    chance = Random(seed)
    row = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    masks: list[float] = []
    tokens: list[float] = []
    for _ in range(WALKS):
        matcher = grammar.matcher(None, 0)
        for _ in range(MOST_TOKENS):
            _, spent = _timed(lambda: matcher.fill(row, 0))  # noqa: B023  # called at once
            masks.append(spent * 1000)
            bits = np.flatnonzero(np.unpackbits(row[0].numpy().view(np.uint8), bitorder="little"))
            token = int(chance.choice(bits))
            _, spent = _timed(lambda: matcher.accept(token))  # noqa: B023
            tokens.append(spent * 1000)
            if matcher.is_terminated():
                break
    return masks, tokens


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and its milliseconds."""
    began = time.thread_time_ns()
    found = call()
    return found, (time.thread_time_ns() - began) / 1e6


def _quantile(values: list[float], percent: float) -> float:
    return round(float(np.percentile(values, percent)), 1)
