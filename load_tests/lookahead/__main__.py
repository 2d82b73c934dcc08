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
from rich.progress import Progress, TimeElapsedColumn

from deployments.reporting.report import BenchReport, Target
from load_tests.lookahead.arms import LOOKAHEADS, MOST, Experiment, Task
from load_tests.lookahead.beside_paper import draw
from load_tests.lookahead.concept_sets import concept_sets
from load_tests.lookahead.driving import LanguageModel
from load_tests.lookahead.figures import row, same_texts, targets
from load_tests.lookahead.models import DRAFT, TARGET, TorchLanguage, model_in, tokenizer_in
from load_tests.lookahead.plain import greedy
from load_tests.lookahead.stages import Stages, compared_cells
from load_tests.lookahead.tables import HEADINGS, cells, shown
from model_service.lookahead import Stop

PACKAGES = ("maskcast", "torch", "transformers", "simplemma")
LEAST_CONCEPTS = 3
SEED = 99
TIMED = 20
"""Texts whose decoding, one by one, gives the cost of a draft's token."""


def main(
    texts: Annotated[int, typer.Option(min=10, help="sets of concepts, and how many of them are compared with plain loops")] = 200,
    work: Annotated[Path | None, typer.Option(help="keep models and stages in this folder, and go on from what is there")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here, and a chart beside it")] = None,
) -> None:
    """What look-aheads satisfy and cost, on models of a few minutes' training."""
    torch.set_num_threads(1)
    console = Console()
    with TemporaryDirectory() as folder, Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as progress:
        experiment = _experiment(work or Path(folder), texts, progress)
        cost_ratio = _seconds(experiment.draft, experiment) / _seconds(experiment.target, experiment)
        stages = Stages(work or Path(folder))
        done = [stages.of(experiment, arm) for arm in progress.track(LOOKAHEADS, description="look-aheads, and plain loops")]
        plain = experiment.plain()
    rows = [row(experiment, outcome, cost_ratio) for outcome in plain]
    rows += [{**row(experiment, stage.outcome, cost_ratio), **compared_cells(stage)} for stage in done]
    looked, compared = [stage.outcome for stage in done], [stage.compared for stage in done]
    promised = [
        *targets(rows),
        same_texts(looked),
        Target.at_most("texts that are not those of plain loops", sum(found.wrong for found in compared), 0, ""),
        Target.at_most("near-ties excused, of all texts", 100 * sum(f.excused for f in compared) / (texts * len(compared)), 2, "%"),
    ]
    title = f"a token of the draft costs {cost_ratio:.2f} of the target's"
    console.print(shown(title, HEADINGS, [cells(one) for one in rows]))
    if json_out is not None:
        draw(rows, json_out.with_suffix(".png"))
    command = f"python -m load_tests.lookahead --texts {texts}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, promised, rows).publish(console, json_out))


def _experiment(folder: Path, texts: int, progress: Progress) -> Experiment:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_in(folder)
    target, draft = (TorchLanguage(model_in(folder, shape)) for shape in progress.track((TARGET, DRAFT), description="models"))
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
