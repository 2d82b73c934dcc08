"""The time that a guard adds to a step."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from grammar_service.backends import CompiledGrammar, backend_named
from grammar_service.backends.guarded import Guarded
from grammar_service.backends.llguidance.backend import form_of
from grammar_service.guards.guard import Guard
from grammar_service.guards.plan import plan_of
from grammar_service.spec import FLEXIBLE, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.errors import BenchFailed

WARMING = 32
"""Tokens."""
_OBJECT = {"type": "object"}
_WORDS = ("name", "city", "total", "created_at", "note", "id", "amount", "is_active", "tags", "owner")


@dataclass(frozen=True, slots=True)
class Text:
    """A text that an answer is like, what it is of, and the schema of the request, whose members may come in `any_order`."""

    name: str
    document: Any
    schema: dict[str, Any]
    any_order: bool = False


def texts() -> list[Text]:
    record = {word: f"the {word} of it" for word in _WORDS}
    strings = [f"{word} {number}" for number in range(50) for word in _WORDS]
    mixed = {word: record[word] for word in reversed(_WORDS)}
    fields = {f"{word}_{number}": number for number in range(3) for word in _WORDS}
    return [
        Text("records in records", {word: {**record, "inner": [record, {"a": 1.5, "b": None}]} for word in _WORDS}, _OBJECT),
        Text("1,000 members", {f"{word}_{number}": number for number in range(100) for word in _WORDS}, _OBJECT),
        Text("names that begin alike", {"a" * length: True for length in range(1, 200)}, _OBJECT),
        Text("a long string", {"text": 'Some words, and "more" of them: ' * 100, "text_2": "\n" * 50}, _OBJECT),
        Text("nested deep", _nested(60), _OBJECT),
        Text("500 different strings", strings, _distinct({"type": "string"})),
        Text("1,000 different numbers", [*range(1000)], _distinct({"type": "integer"})),
        Text("50 listed strings", strings[:50], _distinct({"enum": strings[:60]})),
        Text("records, members in any order", [mixed] * 10, {"type": "array", "items": _record(record)}, any_order=True),
        Text("30 members in any order", fields, _record(fields), any_order=True),
        Text("200 different objects", [{"id": text, "kind": "a", "tags": ["b"], "ok": True} for text in strings[:200]], _distinct(_OBJECT)),
    ]


def _record(document: dict[str, Any]) -> dict[str, Any]:
    kinds = {name: {"type": "integer" if isinstance(value, int) else "string"} for name, value in document.items()}
    return {"type": "object", "properties": kinds, "required": [*document], "additionalProperties": False}


def _distinct(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": True}


def _nested(depth: int) -> Any:
    return {"a": _nested(depth - 1), "b": depth} if depth else []


def step_times(tokenizer: GrammarTokenizer, backend: str, text: Text) -> list[float]:
    """Microseconds of the guard in each step, mask and token together, of one text, behind a start of the same that is not measured: a
    library that has just compiled leaves nothing in the processor's caches. Raises BenchFailed: the text is not accepted."""
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(text.schema), FLEXIBLE, any_order=text.any_order)
    library, plan = backend_named(backend), plan_of(form_of(spec).document if text.any_order else text.schema)
    grammar = library.load(library.compile(spec, tokenizer).data, tokenizer)
    tokens = tokenizer.encode(json.dumps(text.document))
    if plan is None:
        raise BenchFailed("there is no guard")
    _walked(grammar, plan.guard(tokenizer.names), tokens[:WARMING], tokenizer.vocab_size)
    return _walked(grammar, plan.guard(tokenizer.names), tokens, tokenizer.vocab_size)


def _walked(grammar: CompiledGrammar, guard: Guard, tokens: Sequence[int], vocab_size: int) -> list[float]:
    outer = grammar.matcher(None, 0)
    if not isinstance(outer, Guarded):
        raise BenchFailed("there is no guard")
    inner, matcher = outer.inner, Guarded(outer.inner, guard)
    mask = torch.zeros(1, (vocab_size + 31) // 32, dtype=torch.int32)
    times = []
    for token in tokens:
        inner.fill(mask, 0)
        started = time.perf_counter_ns()
        matcher.bound(mask, 0)
        filled = time.perf_counter_ns()
        if not inner.accept(token):
            raise BenchFailed("the text is not accepted")
        accepted = time.perf_counter_ns()
        guard.accept(token)
        times.append((filled - started + time.perf_counter_ns() - accepted) / 1000)
    return times


def cost_row(tokenizer: GrammarTokenizer, backend: str, text: Text) -> dict[str, Any]:
    """The best of three runs of each step: a busy machine makes single ones slow."""
    times = np.min([step_times(tokenizer, backend, text) for _ in range(3)], axis=0)
    p50, p99 = np.percentile(times, (50, 99))
    return {
        "part": "cost",
        "backend": backend,
        "text": text.name,
        "steps": len(times),
        "mean_us": round(float(np.mean(times)), 2),
        "p50_us": round(float(p50), 2),
        "p99_us": round(float(p99), 2),
        "max_us": round(float(np.max(times)), 2),
    }
