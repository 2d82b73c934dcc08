"""`python -m load_tests.real_model.confidence`: whether a model is right more often where it is sure, and what it costs to be told.

Each exercise is asked once for its worth, greedily; then all of them again and again, by turns with and without `field_confidence`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import httpx
import numpy as np
import typer
from matplotlib.figure import Figure
from rich.console import Console

from deployments.config_model import SMOLLM2, name_of
from deployments.reporting.report import BenchReport, Row, Target
from load_tests.real_model.tasks import CLASSIFICATION, EXTRACTION, Exercise, chat_body, fields_right, make_exercises
from load_tests.reporting.running_service import PACKAGES, running_service

TASKS = (EXTRACTION, CLASSIFICATION)
CLIENTS = 8
FIELD = "field_confidence"
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
"""Of the bins of the diagram."""
HEADINGS = ("task", "confidence", "fields", "mean confidence", "right")


def main(
    exercises: Annotated[int, typer.Option(min=2, help="of each task")] = 100,
    turns: Annotated[int, typer.Option(min=1, help="with and without")] = 3,
    json_out: Annotated[Path | None, typer.Option("--json", help="write the report here, and a diagram beside it")] = None,
) -> None:
    """Compare confidence with what is right, and the requests a second with those that do not ask for it."""
    made = {task: make_exercises(task, exercises) for task in TASKS}
    with running_service({"model": {"path": SMOLLM2}}) as url, httpx.Client(base_url=url, timeout=300) as client:
        rows = list(_rows(client, name_of(SMOLLM2), made, turns))
    command = f"python -m load_tests.real_model.confidence --exercises {exercises} --turns {turns}"
    report = BenchReport.here(command, PACKAGES, targets(rows), rows)
    if json_out is not None:
        draw(rows, json_out.with_suffix(".png"))
    raise typer.Exit(report.publish(Console(), json_out))


def _rows(client: httpx.Client, model: str, made: Mapping[str, Sequence[Exercise]], turns: int) -> Iterator[Row]:
    for task, exercises in made.items():
        bodies = [chat_body(exercise, model) for exercise in exercises]
        confident = [{**body, FIELD: True} for body in bodies]
        for exercise, choice in zip(exercises, _ask(client, confident)[0], strict=True):
            yield from fields(task, exercise, choice)
        for turn in range(turns):
            for kind, asked in (("with", confident), ("without", bodies))[:: 1 if turn % 2 else -1]:
                yield {"kind": kind, "task": task, "requests_per_s": len(asked) / _ask(client, asked)[1]}


def _ask(client: httpx.Client, bodies: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], float]:
    """The choices, and the seconds that all took."""

    def ask(body: Mapping[str, Any]) -> Mapping[str, Any]:
        choice: Mapping[str, Any] = client.post("/v1/chat/completions", json=body).raise_for_status().json()["choices"][0]
        return choice

    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as threads:
        return list(threads.map(ask, bodies)), time.perf_counter() - began


def fields(task: str, exercise: Exercise, choice: Mapping[str, Any]) -> Iterator[Row]:
    """A row for each expected field of a finished answer."""
    if choice["finish_reason"] != "stop":
        return
    text = choice["message"]["content"]
    for name, value in exercise.expected.items():
        alone = Exercise(exercise.content, exercise.request, {name: value})
        yield {
            "kind": "field",
            "task": task,
            "field": name,
            "confidence": choice[FIELD][f"/{name}"],
            "right": fields_right(alone, text) == 1,
        }


def targets(rows: Sequence[Row]) -> list[Target]:
    found = []
    for task in TASKS:
        speeds = {kind: median(row["requests_per_s"] for row in _of(rows, kind, task)) for kind in ("with", "without")}
        told = _of(rows, "field", task)
        found.append(
            Target.at_least(f"{task}: requests a second, asked for confidence / not", speeds["with"] / speeds["without"], 0.95, "")
        )
        found.append(Target.at_least(f"{task}: a right field has more confidence than a wrong one", chance(told), 0.65, "of pairs"))
    return found


def chance(rows: Sequence[Row]) -> float | None:
    """That a right field has more confidence than a wrong one, ties by half (the area under the curve of Hanley and McNeil, 1982)."""
    right, wrong = (np.array([row["confidence"] for row in rows if row["right"] is is_right]) for is_right in (True, False))
    if not len(right) or not len(wrong):
        return None
    return float(np.mean((right[:, None] > wrong) + 0.5 * (right[:, None] == wrong)))


def bins(rows: Sequence[Row], task: str) -> Iterator[tuple[float, float, int, float, float]]:
    """Of each that has fields: its edges, how many, their mean confidence, and the share that is right."""
    told = _of(rows, "field", task)
    for low, high in pairwise(EDGES):
        inside = [row for row in told if low < row["confidence"] <= high or (low == row["confidence"] == 0)]
        if inside:
            confidence, right = (float(np.mean([row[name] for row in inside])) for name in ("confidence", "right"))
            yield low, high, len(inside), confidence, right


def lines(rows: Sequence[Row]) -> list[Sequence[str]]:
    return [
        (task, f"{low:g} to {high:g}", str(count), f"{mean:.2f}", f"{right:.2f}")
        for task in TASKS
        for low, high, count, mean, right in bins(rows, task)
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """A PNG: for each task the share of right fields over their confidence."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for axes, task in zip(figure.subplots(1, len(TASKS), sharey=True), TASKS, strict=True):
        found = list(bins(rows, task))
        axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1, label="as often as it says")
        axes.plot([mean for *_, mean, _ in found], [right for *_, right in found], marker="o", color="#0077bb", label="SmolLM2-135M")
        for _, _, count, mean, right in found:
            axes.annotate(str(count), (mean, right), textcoords="offset points", xytext=(6, -10), fontsize=8)
        axes.set(title=task, xlabel="confidence", xlim=(0, 1.06), ylim=(0, 1.04))
    axes.legend(loc="upper left")
    figure.supylabel("share of fields that are right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _of(rows: Sequence[Row], kind: str, task: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind and row["task"] == task]


if __name__ == "__main__":
    typer.run(main)
