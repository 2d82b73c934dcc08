"""CartesianMerge step by step, as table 2 of the article has it: once a tokenizer, once a grammar, each token.

There the grammars are a thousand JSON strings of function calls; here a few function calls without free text, which become an automaton
of their own. Where a string is free, no pairs are looked for: rows and masks are taken together step by step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from grammar_service.automata.byte_dfa import of_regex
from grammar_service.automata.cartesian_merge import cartesian_merge
from grammar_service.automata.token_index import TokenIndex
from grammar_service.backends.canonical.product import MOST_EDGES, MOST_NODES, ProductGrammar
from grammar_service.errors import GrammarTooLarge
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.costs import table_cost
from load_tests.canonical.products import MOST_NODES as MOST_PAIRS
from load_tests.canonical.published.row import figure

_NUMBER = r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,2})?"
_DATE, _TIME = r'"20[0-9]{2}-[01][0-9]-[0-3][0-9]"', '"[0-2][0-9]:[0-5][0-9]"'
CALLS = {
    "get_exchange_rate": {"base_currency": '"[A-Z]{3}"', "target_currency": '"[A-Z]{3}"'},
    "calculate_tip": {"bill_amount": _NUMBER, "tip_percentage": "[1-9]?[0-9]"},
    "generate_password": {"length": "[1-9][0-9]?", "include_symbols": "(true|false)"},
    "schedule_meeting": {"date": _DATE, "time": _TIME, "duration": "(15|30|45|60|90)"},
    "convert_temperature": {"value": _NUMBER, "unit": '"(celsius|fahrenheit|kelvin)"'},
    "calculate_distance": {"latitude": _NUMBER, "longitude": _NUMBER, "unit": '"(km|mi)"'},
    "set_reminder": {"date": _DATE, "repeat": '"(never|daily|weekly|monthly)"'},
    "get_stock_price": {"symbol": '"(AAPL|AMZN|IBM|MSFT|NVDA|SAP)"'},
}
"""Names of functions and of their parameters, with regexes of the values."""
PAIRS = "CartesianMerge 3: pairs of states, mean of function calls"
FREE = {"search_books": {"title": r'"[^"\\]*"'}}


def regex_of(name: str, parameters: dict[str, str]) -> str:
    """A call of a function as JSON."""
    members = ", ".join(f'"{parameter}": {value}' for parameter, value in parameters.items())
    return rf'\{{"name": "{name}", "arguments": \{{{members}\}}\}}'


def pair_rows(tokenizer: GrammarTokenizer) -> Iterator[dict[str, Any]]:
    """Processor seconds."""
    yield figure("CartesianMerge 1: own sequences, once a tokenizer", "tekken", 20.9, table_cost(tokenizer)["seconds"], "s")
    found = [_searched(regex_of(*call), tokenizer) for call in CALLS.items()]
    index, pairs, mask = (float(np.mean(column)) for column in list(zip(*found, strict=True))[:3])
    yield figure("CartesianMerge 2: token index, mean of function calls", "tekken", 0.687, index, "s")
    yield figure(PAIRS, "tekken", 27.3, pairs, "s")
    yield figure("CartesianMerge 4: a mask", "tekken", 0.00153, mask, "s")
    yield figure("pairs of states that are kept, mean", "tekken", None, float(np.mean([row[3] for row in found])))
    yield figure("a call with free text: until it is left to go step by step", "tekken", 27.3, _left(tokenizer), "s")


def _searched(regex: str, tokenizer: GrammarTokenizer) -> tuple[float, float, float, int]:
    """Seconds for the index, for the pairs, and for a mask at each state on the way; the number of pairs."""
    began = time.process_time()
    index = TokenIndex.of_language(of_regex(regex), tokenizer.trie)
    indexed = time.process_time()
    product = cartesian_merge(index, tokenizer.canonical, MOST_PAIRS)
    searched = time.process_time()
    masks = _masks(product, tokenizer)
    return indexed - began, searched - indexed, masks, len(product)


def _masks(product: TokenIndex, tokenizer: GrammarTokenizer) -> float:
    """The mean along one sequence."""
    row = torch.zeros(1, (tokenizer.vocab_size + 31) // 32, dtype=torch.int32)
    matcher = ProductGrammar(product, tokenizer).matcher(None, 0)
    state, spent, count = 0, 0, 0
    while len(product.row(state)[0]):
        began = time.thread_time_ns()
        matcher.fill(row, 0)
        spent += time.thread_time_ns() - began
        count += 1
        token = int(product.row(state)[0][-1])
        matcher.accept(token)
        state = product.after(state, token) or 0
    return spent / max(count, 1) / 1e9


def _left(tokenizer: GrammarTokenizer) -> float | None:
    """Seconds until the bounds of a product are met; None: they are not."""
    (call,) = FREE.items()
    began = time.process_time()
    try:
        index = TokenIndex.of_language(of_regex(regex_of(*call)), tokenizer.canonical.trie, MOST_EDGES)
        cartesian_merge(index, tokenizer.canonical, MOST_NODES)
    except GrammarTooLarge:
        return time.process_time() - began
    return None
