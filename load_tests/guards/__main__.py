"""`python -m load_tests.guards`: what a guard adds to a step on a vocabulary of 131,072, and random walks to the end through random schemas
with guards, on both backends. For comparison, the same walks without a guard, to see how often a grammar alone lets something
come twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer
from rich.console import Console

from deployments.reporting.report import BenchReport, Target
from grammar_service.backends import CompiledGrammar, Matcher, backend_named
from grammar_service.backends.guarded import Guarded
from grammar_service.spec import FLEXIBLE, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tekken import tekken_folder
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.guards.cost import cost_row, texts
from load_tests.guards.random_schemas import random_record, random_schema
from load_tests.guards.walks import Walker, is_valid, repeats

PACKAGES = ("maskcast", "xgrammar", "llguidance", "jsonschema", "mistral_common", "torch", "numpy")
BACKENDS = XGRAMMAR, LLGUIDANCE = ("xgrammar", "llguidance")
SEED = 20261122
A_SCHEMA = 10
"""Walks through one schema."""
MOST_US = 30


class Unguarded:
    """A grammar without its guard."""

    def __init__(self, grammar: CompiledGrammar) -> None:
        self._grammar = grammar
        self.size_bytes = grammar.size_bytes

    def matcher(self, stop_token_ids: Any, max_rollback_tokens: int) -> Matcher:
        matcher = self._grammar.matcher(stop_token_ids, max_rollback_tokens)
        return matcher.inner if isinstance(matcher, Guarded) else matcher


def main(
    walks: Annotated[int, typer.Option(min=1, help="walks to the end, over all schemas and both backends")] = 2000,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Measure the cost of guards, and walk to the end of texts with them."""
    tokenizer = GrammarTokenizer.load(tekken_folder())
    console = Console()
    rows = [cost_row(tokenizer, backend, text) for backend in BACKENDS for text in texts() if not (text.any_order and backend == XGRAMMAR)]
    for any_order in (False, True):
        rows += islice(_walked(tokenizer, any_order), -(-walks // A_SCHEMA))
    report = BenchReport.here(f"python -m load_tests.guards --walks {walks}", PACKAGES, _targets(rows), rows)
    raise typer.Exit(report.publish(console, json_out))


def _walked(tokenizer: GrammarTokenizer, any_order: bool) -> Iterator[dict[str, Any]]:
    """A row a schema, by its seed, and backend: each has A_SCHEMA walks, and as many without its guard."""
    for seed in count():
        schema, chance = (random_record if any_order else random_schema)(Random(SEED + seed)), Random(seed)
        spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), FLEXIBLE, any_order=any_order)
        for backend in (LLGUIDANCE,) if any_order else BACKENDS:
            library = backend_named(backend)
            if library.unsupported(spec):
                continue
            grammar = library.load(library.compile(spec, tokenizer).data, tokenizer)
            walker = Walker(tokenizer, chance)
            texts = [walker.walk(grammar) for _ in range(A_SCHEMA)]
            free = [walker.walk(Unguarded(grammar)) for _ in range(A_SCHEMA)]
            yield {
                "part": "walks",
                "backend": backend,
                "any_order": any_order,
                "seed": SEED + seed,
                "walks": len(texts),
                "invalid": sum(not is_valid(text, schema) for text in texts),
                "repeating": sum(map(repeats, texts)),
                "wrong_without": sum(repeats(text) or not is_valid(text, schema) for text in free),
            }


def _targets(rows: list[dict[str, Any]]) -> list[Target]:
    slowest = [_slowest(rows, backend, figure) for figure in ("mean", "p99") for backend in BACKENDS]
    return [*slowest, *_of_walks(rows, any_order=False), *_of_walks(rows, any_order=True)]


def _of_walks(rows: list[dict[str, Any]], any_order: bool) -> list[Target]:
    walked, how = [row for row in rows if row.get("any_order") is any_order], ", members in any order" if any_order else ""
    total = {name: sum(row[name] for row in walked) for name in ("walks", "invalid", "repeating", "wrong_without")}
    return [
        Target.at_least(f"random walks to the end{how}", total["walks"], 2000, ""),
        Target.at_most(f"walks whose text is not valid{how}", total["invalid"], 0, ""),
        Target.at_most(f"walks with a name twice{how}", total["repeating"], 0, ""),
        Target.at_least(f"of as many walks without guards: not valid, or with a name twice{how}", total["wrong_without"], 1, ""),
    ]


def _slowest(rows: list[dict[str, Any]], backend: str, figure: str) -> Target:
    """Of the texts, the one whose steps take longest."""
    slowest = max((row[f"{figure}_us"], row["text"]) for row in rows if row["part"] == "cost" and row["backend"] == backend)
    return Target.at_most(f"a step more on {backend}, {figure}: {slowest[1]}", slowest[0], MOST_US, "µs")


if __name__ == "__main__":
    typer.run(main)
