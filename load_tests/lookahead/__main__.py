"""`python -m load_tests.lookahead`: trains a target and a draft on sentences with given concepts, decodes for concepts that they have not
seen with and without look-ahead, and tells what that costs, in forwards, and in time on engines. Every text of a look-ahead is compared
with plain loops."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from load_tests.lookahead.few_shot import behind_examples
from load_tests.lookahead.figures import GREEDY, as_loops, compared_cells, in_time, row, same_texts, targets
from load_tests.lookahead.models import DRAFT, TARGET, models_in, tokenizer_in
from load_tests.lookahead.near_ties import Loop, Once, compare
from load_tests.lookahead.plain import greedy
from load_tests.lookahead.served import figures as engines
from load_tests.lookahead.served.pair import METHODS, Tasks, answers, serve
from load_tests.lookahead.served.turns import BEHIND_EXAMPLES, BY_THEMSELVES, Served
from load_tests.lookahead.stages import PACKAGES, Stages, room_in
from load_tests.lookahead.tables import HEADINGS, cells, shown
from model_service.lookahead import Stop

LEAST_CONCEPTS = 3
SEED = 99
TIMED = 20
"""Texts whose decoding, one by one, gives the cost of a draft's token."""
WITH_EXAMPLES = 50
"""Sets of concepts whose prompts begin with examples as well."""


def main(
    texts: Annotated[int, typer.Option(min=10, help="sets of concepts")] = 200,
    work: Annotated[Path | None, typer.Option(help="keep models and stages in this folder, and go on from what is there")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here, and a chart beside it")] = None,
) -> None:
    """What look-aheads satisfy and cost, on models of a few minutes' training."""
    torch.set_num_threads(1)
    console, began = Console(), time.monotonic()
    with TemporaryDirectory() as temporary, Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as progress:
        folder = room_in(work or Path(temporary))
        resumed = folder.is_dir()
        experiments = _experiments(folder, texts, progress)
        experiment = experiments[BY_THEMSELVES]
        cost_ratio = _seconds(experiment.draft, experiment) / _seconds(experiment.target, experiment)
        stages = Stages(folder, experiment.tasks)
        looked = [stages.outcome(experiment, arm) for arm in progress.track(LOOKAHEADS, description="look-aheads")]
        expected = _loops(folder, experiments, progress)
        served = list(_served(folder, experiments, progress))
        plain = experiment.plain()
    compared = [compare(expected[BY_THEMSELVES][one.name], one.said) for one in looked]
    rows = [row(experiment, outcome, cost_ratio) for outcome in plain]
    rows += [{**row(experiment, one, cost_ratio), **compared_cells(found)} for one, found in zip(looked, compared, strict=True)]
    on_engines = [engines.row(one, compare(expected[one.way.prompts][one.arm], one.said)) for one in served]
    minutes = None if resumed else (time.monotonic() - began) / 60
    told = [*targets(rows), *same_texts(looked, expected[BY_THEMSELVES]), *as_loops(compared)]
    promised = [*told, *engines.targets(on_engines), in_time(minutes)]
    title = f"a token of the draft costs {cost_ratio:.2f} of the target's"
    console.print(shown(title, HEADINGS, [cells(one) for one in rows]))
    console.print(shown("on engines: time", engines.time_headings(), engines.time_lines(on_engines)))
    console.print(shown("on engines: texts", engines.TEXT_HEADINGS, engines.text_lines(on_engines)))
    if json_out is not None:
        draw(rows, json_out.with_suffix(".png"))
    command = f"python -m load_tests.lookahead --texts {texts}"
    raise typer.Exit(BenchReport.here(command, PACKAGES, promised, [*rows, *on_engines]).publish(console, json_out))


def _experiments(folder: Path, texts: int, progress: Progress) -> dict[str, Experiment]:
    """By what their prompts are."""
    folder.mkdir(parents=True, exist_ok=True)
    training = progress.add_task("models", total=None)
    target, draft = models_in(folder, (TARGET, DRAFT))
    progress.update(training, total=1, completed=1)
    tokenizer = tokenizer_in(folder)
    drawn = list(islice(concept_sets(SEED, held_out=True, least=LEAST_CONCEPTS), texts))
    tasks = {BY_THEMSELVES: [Task(one, tokenizer) for one in drawn], BEHIND_EXAMPLES: behind_examples(drawn[:WITH_EXAMPLES], tokenizer)}
    stop = Stop(MOST, frozenset({int(tokenizer.eos_token_id)}))
    return {prompts: Experiment(target, draft, of_them, stop) for prompts, of_them in tasks.items()}


def _loops(folder: Path, experiments: Mapping[str, Experiment], progress: Progress) -> dict[str, dict[str, list[Loop]]]:
    """What plain loops say, by prompts and arm."""
    found: dict[str, dict[str, list[Loop]]] = {}
    for prompts, arms in {BY_THEMSELVES: (None, *LOOKAHEADS), BEHIND_EXAMPLES: (None, *METHODS)}.items():
        experiment = replace(experiments[prompts], target=Once(experiments[prompts].target), draft=Once(experiments[prompts].draft))
        stages = Stages(folder, experiment.tasks)
        alone = progress.track(arms, description=f"plain loops, prompts {prompts}")
        found[prompts] = {GREEDY if arm is None else arm.name: stages.loops(experiment, arm) for arm in alone}
    return found


def _served(folder: Path, experiments: Mapping[str, Experiment], progress: Progress) -> Iterator[Served]:
    tasks: Tasks = {prompts: experiment.tasks for prompts, experiment in experiments.items()}
    stages = Stages(folder, [task for of_them in tasks.values() for task in of_them])
    asking = progress.add_task("answers of engines", total=answers(tasks))
    yield from serve(stages, folder, tasks, lambda more: progress.advance(asking, more))
    progress.update(asking, completed=answers(tasks))


def _seconds(model: LanguageModel, experiment: Experiment) -> float:
    """Processor time of a token, decoding greedily, one text at a time."""
    prompts = [task.prompt for task in experiment.tasks[:TIMED]]
    greedy(model, prompts[:1], experiment.stop)
    started = time.process_time()
    tokens = sum(len(greedy(model, [prompt], experiment.stop)[0]) for prompt in prompts)
    return (time.process_time() - started) / tokens


if __name__ == "__main__":
    typer.run(main)
