"""`python -m load_tests.canonical.distribution`: answers under plain masks, mask and row, and canonical masks, against the model's own
distribution over the same texts.

The embedded model answers questions about documents that it was not trained on, up to the value of a field; of four values one may follow.
Its own distribution over these is that of all token sequences of each value together, on the condition that one of them comes. What masks
make of it is computed along all token sequences as well, at temperature 1; nothing is drawn.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from deployments.builders import EMBEDDED_WEIGHTS
from deployments.commands.progress import CaseProgress
from deployments.reporting.report import BenchReport, Row
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.canonical.distribution.figures import HEADINGS, PAIR_HEADINGS, WITH, WITHOUT, cells, of_kind, pair_cells, targets
from load_tests.canonical.distribution.measuring import set_rows
from load_tests.canonical.distribution.value_sets import questions

PACKAGES = ("maskcast", "torch", "transformers", "numpy")


def main(
    sets: Annotated[int, typer.Option(min=1, help="of each kind, at least")] = 500,
    size: Annotated[int, typer.Option(min=2, help="values in a set")] = 4,
    seed: Annotated[int, typer.Option(help="of documents and values")] = 20261124,
    least: Annotated[float, typer.Option(help="sets with no value that is as likely are left out")] = 1e-12,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """Compute total variation between answers under masks and the model's own ones."""
    console, rows = Console(width=160), measured(sets, size, seed, least)
    for kind in (WITH, WITHOUT):
        console.print(_table(kind, HEADINGS, cells(of_kind(rows, kind))))
        console.print(_table("", PAIR_HEADINGS, pair_cells(of_kind(rows, kind))))
    command = f"python -m load_tests.canonical.distribution --sets {sets} --size {size} --seed {seed} --least {least:g}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, [*targets(rows)], rows).publish(console, json_out))


def measured(sets: int, size: int, seed: int, least: float) -> list[Row]:
    """Question by question, until there are `sets` of each kind."""
    tokenizer, grammars = PreTrainedTokenizerFast.from_pretrained(EMBEDDED_WEIGHTS), GrammarTokenizer.load(EMBEDDED_WEIGHTS)
    model = LlamaForCausalLM.from_pretrained(EMBEDDED_WEIGHTS, dtype=torch.float32).eval()
    rows: list[Row] = []
    began = time.process_time()
    with CaseProgress(Console(stderr=True)) as progress:
        for number, question in enumerate(questions(size, seed, tokenizer)):
            rows += [{"question": number, **row} for row in set_rows(question, model, grammars, least)]
            done = min(len(of_kind(rows, kind)) for kind in (WITH, WITHOUT))
            progress.show("sets of each kind", done, sets)
            if done >= sets:
                break
        progress.say(f"{time.process_time() - began:.0f} s of processor time")
    return rows


def _table(title: str, headings: tuple[str, ...], lines: Iterable[list[str]]) -> Table:
    found = Table(*headings, title=title, title_justify="left")
    for line in lines:
        found.add_row(*line)
    return found


if __name__ == "__main__":
    typer.run(main)
