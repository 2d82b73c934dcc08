"""What answers are worth, and what was promised; pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployments.reporting.report import Row, Target
from load_tests.front_door.clients.messages import Answer
from load_tests.front_door.figures import OK, OURS, STOCK, Found
from load_tests.real_model.tasks import CLASSIFICATION, EXTRACTION, FREE, SUMMARY, Exercise, fields_right, is_valid

WITHOUT_JUMPS, AGAIN = "maskcast without jumps", "the same, asked again"
CLIENTS = 8
"""Of the promises."""
THROUGHPUT = {CLASSIFICATION: 3.0, EXTRACTION: 1.5, SUMMARY: 1.1, FREE: 0.97}
NORMAL_95 = 1.96
"""Standard errors of a mean, to either side."""
STOP = frozenset({"stop", "tool_calls"})


@dataclass(frozen=True, slots=True)
class Worth:
    """The answers of one side to all exercises of a task, in their order."""

    side: str
    task: str
    exercises: Sequence[Exercise]
    texts: Sequence[str]
    finished: Sequence[bool]
    right: Sequence[int]

    @classmethod
    def of(cls, side: str, task: str, exercises: Sequence[Exercise], answers: Iterable[Answer]) -> Worth:
        by_body = {answer.body: answer for answer in answers if answer.status == OK}
        texts = [by_body[number].text if number in by_body else "" for number in range(len(exercises))]
        finished = [number in by_body and by_body[number].finish in STOP for number in range(len(exercises))]
        right = [fields_right(exercise, text) for exercise, text in zip(exercises, texts, strict=True)]
        return cls(side, task, exercises, texts, finished, right)

    @property
    def shares(self) -> list[float]:
        """Of the fields of each exercise, those that are right; nothing of exercises that have none."""
        pairs = zip(self.right, self.exercises, strict=True)
        return [right / len(exercise.expected) for right, exercise in pairs if exercise.expected]

    def row(self, without_jumps: Worth | None, stock: Worth | None) -> Row:
        """`different`: texts that are not those without jumps, `same_values`: those of them that are the same JSON but for blanks;
        `more_right`: the mean difference to stock's share of fields, exercise by exercise, with half the width of its 95 % interval."""
        share, half = mean_95(self.shares)
        pairs = zip(self.shares, stock.shares, strict=True) if stock is not None else []
        more, more_half = mean_95([ours - theirs for ours, theirs in pairs])
        pairs_of_texts = [] if without_jumps is None else list(zip(self.texts, without_jumps.texts, strict=True))
        different = [(one, other) for one, other in pairs_of_texts if one != other]
        valid = sum(done and is_valid(each, text) for done, each, text in zip(self.finished, self.exercises, self.texts, strict=True))
        return {
            "kind": "worth",
            "side": self.side,
            "task": self.task,
            "exercises": len(self.exercises),
            "finished": sum(self.finished),
            "valid": valid,
            "fields_right": _rounded(share),
            "fields_right_95": _rounded(half),
            "more_right": _rounded(more),
            "more_right_95": _rounded(more_half),
            "different": None if without_jumps is None else len(different),
            "same_values": None if without_jumps is None else sum(_same_values(*pair) for pair in different),
        }


WORTH_HEADINGS = (
    "task",
    "side",
    "exercises",
    "finished",
    "valid",
    "fields right",
    "more than stock",
    "other texts than without jumps",
    "of these the same values",
)


def worth_lines(rows: Sequence[Row]) -> list[list[str]]:
    """By task; shares with half their 95 % intervals."""
    worth = [row for row in rows if row["kind"] == "worth"]
    tasks = dict.fromkeys(row["task"] for row in worth)
    return [_worth_line(row) for task in tasks for row in worth if row["task"] == task]


def _worth_line(row: Row) -> list[str]:
    def share(name: str, form: str) -> str:
        return "–" if row[name] is None else f"{row[name]:{form}} ± {row[f'{name}_95']:.3f}"

    counts = [str(row[name]) for name in ("exercises", "finished", "valid")]
    different = ["–" if row[name] is None else str(row[name]) for name in ("different", "same_values")]
    return [row["task"], row["side"], *counts, share("fields_right", ".3f"), share("more_right", "+.3f"), *different]


def mean_95(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean, and half the width of its 95 % interval, by the normal approximation."""
    if len(values) < 2:
        return None, None
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, NORMAL_95 * math.sqrt(variance / len(values))


def worth_rows(worths: Sequence[Worth]) -> list[Row]:
    found: Mapping[tuple[str, str], Worth] = {(worth.side, worth.task): worth for worth in worths}
    return [
        worth.row(
            found.get((WITHOUT_JUMPS, worth.task)) if worth.side in (OURS, AGAIN) else None,
            found.get((STOCK, worth.task)) if worth.side != STOCK else None,
        )
        for worth in worths
    ]


def targets(rows: Sequence[Row]) -> list[Target]:
    """Of the cells that were run; ratios are medians over turns of those within a turn."""
    speed = [row for row in rows if row["kind"] == "speed"]
    worth = [row for row in rows if row["kind"] == "worth"]
    return [*_throughput(Found(speed)), *_worth(worth), *_sound(speed)]


def _throughput(found: Found) -> Iterator[Target]:
    for task, clients in found.cells([CLIENTS], "stream"):
        if (bound := THROUGHPUT.get(task)) is not None:
            name = f"{task}, {clients} clients: requests a second, ours / stock"
            yield Target.at_least(name, found.ratio("requests_per_s", task, clients), bound, "×")


def _worth(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows:
        if row["side"] == OURS and row["more_right"] is not None:
            name = f"{row['task']}: share of fields right, ours less stock's, at the upper end of its 95 % interval"
            yield Target.at_least(name, row["more_right"] + row["more_right_95"], 0, "")
    ours = [row for row in rows if row["side"] == OURS]
    if ours:
        wrong = sum(row["finished"] - row["valid"] for row in ours)
        yield Target.at_most("answers that end by themselves and are not what was asked for", float(wrong), 0, "")


def _sound(rows: Sequence[Row]) -> Iterator[Target]:
    ours = [row for row in rows if row["side"] == OURS]
    yield Target.at_most("requests that were not answered", float(sum(row["failed"] for row in ours)), 0, "")


def _same_values(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:  # cut, or not JSON
        return False


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
