"""The exact product of a language and a tokenizer, and the mask and row that it is more than."""

from __future__ import annotations

import json
import time
from typing import Any

from grammar_service.automata.byte_dfa import ByteDfa, of_choices, of_regex
from grammar_service.automata.cartesian_merge import cartesian_merge
from grammar_service.automata.coalescence import model_calls, single_states, tokenizations
from grammar_service.automata.token_index import TokenIndex
from grammar_service.automata.token_trie import TokenTrie
from grammar_service.errors import GrammarTooLarge
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

MOST_NODES = 2_000_000
"""States and edges of a product, at most."""


def languages() -> dict[str, ByteDfa]:
    """The articles' examples, and everyday ones."""
    objects = [json.dumps({"name": name, "age": age}, separators=(",", ":")) for name in ("Paul", "John") for age in (20, 30)]
    return {
        "boolean: true or false": of_regex("boolean: ((true)|(false))"),
        "name and age, compact": of_choices(objects),
        "1,000 choices": of_choices([f"product line {number:03d}, grade {number % 7}" for number in range(1000)]),
        "date and time": of_regex(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})"),
        "number": of_regex(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?"),
        "UUID": of_regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
        "semantic version": of_regex(r"v?\d+\.\d+\.\d+(-[a-z0-9.]+)?"),
    }


def product_row(name: str, language: ByteDfa, tokenizer: GrammarTokenizer, trie: TokenTrie) -> dict[str, Any]:
    """States and edges before and after, and what it took, in processor seconds; no figures of a product that would be too large."""
    started = time.process_time()
    index = TokenIndex.of_language(language, trie)
    indexed = time.process_time()
    row = {
        "part": "products",
        "language": name,
        "byte_states": len(language),
        "index_states": len(index),
        "index_edges": index.edges,
        "index_tokenizations": _few(tokenizations(index)),
        "index_seconds": round(indexed - started, 4),
    }
    try:
        product = cartesian_merge(index, tokenizer.canonical, max_nodes=MOST_NODES)
    except GrammarTooLarge:
        return {**row, "product_seconds": round(time.process_time() - indexed, 4)}
    merged = time.process_time()
    calls = sorted(model_calls(product) or ())
    return {
        **row,
        "product_states": len(product),
        "product_edges": product.edges,
        "product_single": len(single_states(product)),
        "product_tokenizations": _few(tokenizations(product)),
        "product_calls": json.dumps(calls) if calls and len(calls) < 5 else None,
        "product_seconds": round(merged - indexed, 4),
    }


def _few(count: int | None) -> int | None:
    """What JSON holds exactly."""
    return count if count is not None and count < 2**53 else None
