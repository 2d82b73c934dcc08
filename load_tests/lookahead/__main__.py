"""`python -m load_tests.lookahead`: trains a target and a draft on sentences with given concepts, decodes for concepts that they have not
seen with and without look-ahead, and counts what that costs. Every text of a look-ahead is compared with plain loops."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import torch
import typer
from rich.console import Console

from deployments.reporting.report import BenchReport, Target
from load_tests.lookahead.arms import LOOKAHEADS, MOST, Experiment, Task
from load_tests.lookahead.concept_sets import concept_sets
from load_tests.lookahead.driving import LanguageModel
from load_tests.lookahead.figures import row, same_texts, targets
from load_tests.lookahead.models import DRAFT, TARGET, TorchLanguage, model_in, tokenizer_in
from load_tests.lookahead.near_ties import compare
from load_tests.lookahead.plain import greedy
from load_tests.lookahead.tables import HEADINGS, cells, shown
from model_service.lookahead import Stop

PACKAGES = ("maskcast", "torch", "transformers", "simplemma")
LEAST_CONCEPTS = 3
SEED = 99
TIMED = 20
"""Texts whose decoding, one by one, gives the cost of a draft's token."""


def main(
    texts: Annotated[int, typer.Option(min=10, help="sets of concepts, and how many of them are compared with plain loops")] = 200,
    models: Annotated[Path | None, typer.Option(help="train into this folder, and take from it what is there")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here")] = None,
) -> None:
    """What look-aheads satisfy and cost, on models of a few minutes' training."""
    torch.set_num_threads(1)
    console = Console()
    with TemporaryDirectory() as folder:
        experiment = _experiment(models or Path(folder), texts)
        cost_ratio = _seconds(experiment.draft, experiment) / _seconds(experiment.target, experiment)
        looked = [experiment.look_ahead(arm) for arm in LOOKAHEADS]
        compared = [compare(experiment, arm, outcome, texts) for arm, outcome in zip(LOOKAHEADS, looked, strict=True)]
        rows = [row(experiment, outcome, cost_ratio) for outcome in (*experiment.plain(), *looked)]
    for one, found in zip(rows[-len(LOOKAHEADS) :], compared, strict=True):
        one |= {"compared": found.texts, "equal": found.equal, "near_ties": found.excused}
    promised = [
        *targets(rows),
        same_texts(looked),
        Target.at_most("texts that are not those of plain loops", sum(found.wrong for found in compared), 0, ""),
        Target.at_most("near-ties excused, of all texts", 100 * sum(f.excused for f in compared) / (texts * len(compared)), 2, "%"),
    ]
    title = f"a token of the draft costs {cost_ratio:.2f} of the target's"
    console.print(shown(title, HEADINGS, [cells(one) for one in rows]))
    command = f"python -m load_tests.lookahead --texts {texts}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, promised, rows).publish(console, json_out))


def _experiment(folder: Path, texts: int) -> Experiment:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_in(folder)
    target, draft = (TorchLanguage(model_in(folder, shape)) for shape in (TARGET, DRAFT))
    tasks = [Task(drawn, tokenizer) for drawn in islice(concept_sets(SEED, held_out=True, least=LEAST_CONCEPTS), texts)]
    return Experiment(target, draft, tasks, Stop(MOST, frozenset({int(tokenizer.eos_token_id)})))


def _seconds(model: LanguageModel, experiment: Experiment) -> float:
    """Processor time of a token, decoding greedily, one text at a time."""
    prompts = [task.prompt for task in experiment.tasks[:TIMED]]
    greedy(model, prompts[:1], experiment.stop)
    started = time.process_time()
    tokens = sum(len(greedy(model, [prompt], experiment.stop)[0]) for prompt in prompts)
    return (time.process_time() - started) / tokens


if __name__ == "__main__":
    typer.run(main)
