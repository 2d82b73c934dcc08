"""`python -m load_tests.automata`: masks, loading, compiling and bytes of choices and regexes on the backend `automata`, xgrammar and
llguidance, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from deployments.commands.tokenizers import tokenizer_path
from deployments.reporting.report import BenchReport, Row, Target
from grammar_service.backends import Backend, backend_named
from grammar_service.sandbox.prewarm import TYPICAL
from grammar_service.spec import GrammarKind
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.automata.figures import HEADINGS, cells
from load_tests.automata.languages import specs
from load_tests.automata.measuring import Sides, cost

BACKENDS = ("automata", "xgrammar", "llguidance")
PACKAGES = ("maskcast", "xgrammar", "llguidance", "numpy", "mistral_common")
SEED = 20261123
LOADERS = 3
"""Of each backend: the first load of a grammar counts, and one alone varies by more than backends differ."""


def main(
    tokenizers: Annotated[str, typer.Option(help="folders, names on the hub, 'embedded' or 'tekken'")] = "embedded,tekken",
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Print what choices and regexes cost on three backends."""
    rows = [row for name in tokenizers.split(",") for row in measured(name)]
    for name in tokenizers.split(","):
        Console(width=160).print(_table([row for row in rows if row["tokenizer"] == name], name))
    report = BenchReport.here(f"python -m load_tests.automata --tokenizers {tokenizers}", PACKAGES, _targets(rows), rows)
    raise typer.Exit(report.publish(Console(), json_out))


def measured(name: str) -> Iterator[Row]:
    """Each spec in turn on each backend."""
    tokenizer = GrammarTokenizer.load(tokenizer_path(name))
    _ = tokenizer.trie
    backends = [Sides(_warm(backend, tokenizer), [_warm(backend, tokenizer) for _ in range(LOADERS)]) for backend in BACKENDS]
    for case, spec in specs(SEED).items():
        for sides in backends:
            faults = sides.compiling.unsupported(spec)
            figures = {"refused": faults[0].text} if faults else cost(sides, spec, tokenizer, SEED)
            named = {"tokenizer": name, "case": case, "is_choice": spec.kind is GrammarKind.CHOICE, "backend": sides.compiling.name}
            yield {**named, **figures}


def _warm(name: str, tokenizer: GrammarTokenizer) -> Backend:
    """As compile children and engines have it."""
    backend = backend_named(name)
    for spec in TYPICAL:
        if not backend.unsupported(spec):
            backend.load(backend.compile(spec, tokenizer).data, tokenizer)
    return backend


def _targets(rows: list[Row]) -> list[Target]:
    """Of the regexes that are automata, against xgrammar, which would serve them otherwise."""
    pairs = [pair for pair in _pairs(rows) if pair[0]["is_automaton"]]
    ratios = [theirs["mask_p99_us"] / max(ours["mask_p99_us"], 0.1) for ours, theirs in pairs]
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else None
    dearer = sum(ours["mask_p50_us"] > theirs["mask_p50_us"] + 1 for ours, theirs in pairs)
    return [
        Target.at_most("regexes whose median mask costs over 1 µs more than xgrammar's", dearer, 0, ""),
        Target.at_most("regexes that load slower", sum(ours["load_ms"] > theirs["load_ms"] for ours, theirs in pairs), 0, ""),
        Target.at_least("p99 of masks, xgrammar's / ours, geometric mean", mean, 2, "×"),
        Target.at_most("everyday regexes that are too large", len(list(_pairs(rows))) - len(pairs), 0, ""),
    ]


def _pairs(rows: list[Row]) -> Iterator[tuple[Row, Row]]:
    """The figures of one regex, ours and xgrammar's."""
    by_case = {(row["tokenizer"], row["case"], row["backend"]): row for row in rows if "refused" not in row and not row["is_choice"]}
    for (name, case, backend), ours in by_case.items():
        if backend == BACKENDS[0]:
            yield ours, by_case[name, case, "xgrammar"]


def _table(rows: list[Row], title: str) -> Table:
    found = Table(*HEADINGS, title=title, title_justify="left")
    for row in rows:
        found.add_row(*cells(row))
    return found


if __name__ == "__main__":
    typer.run(main)
