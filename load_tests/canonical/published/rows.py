"""All of it: rows for the report, and what was promised of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from deployments.reporting.report import Row, Target
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.published.examples import CALLS, FORBIDDEN, OWN_EDGES, OWN_STATES, PIECES, TEKKEN, TOKENS, example_rows
from load_tests.canonical.published.index_race import index_rows, index_targets
from load_tests.canonical.published.pair_search import PAIRS, pair_rows
from load_tests.canonical.published.single_choice import single_rows
from load_tests.canonical.published.tables import PART

PACKAGES = ("outlines_core", "sentencepiece", "xgrammar", "llguidance")
OBJECTS = 40
"""Whose tokens are counted by whether there is a choice."""


def published_rows(tekken: GrammarTokenizer, seed: int) -> Iterator[dict[str, Any]]:
    yield from example_rows(tekken)
    yield from pair_rows(tekken)
    yield from single_rows(tekken, OBJECTS, seed)
    yield from index_rows(tekken, seed)


def published_targets(rows: Sequence[Row]) -> Iterator[Target]:
    """None where these rows are not there."""
    found = {(row["figure"], row["on"]): row["measured"] for row in rows if row["part"] == PART}
    if not found:
        return
    yield Target.at_most(f"{OWN_STATES} (published: 5)", found[OWN_STATES, TEKKEN], 5, "")
    yield Target.at_most(f"{OWN_EDGES} (published: 4)", found[OWN_EDGES, TEKKEN], 4, "")
    yield Target.at_most(f"{FORBIDDEN}, on {PIECES} (published: 12,260)", found[FORBIDDEN, PIECES], 12_260, "")
    yield Target.at_most(f"{TOKENS}, on Tekken (of the printed index: 9)", found[TOKENS, TEKKEN], 10, "")
    yield Target.at_most(f"{CALLS}, on Tekken (published: 2)", found[CALLS, TEKKEN], 2, "")
    yield Target.at_most(f"{PAIRS} (published: 27.3 s, of other ones)", found[PAIRS, TEKKEN], 27.3, "s")
    yield from index_targets(rows)
