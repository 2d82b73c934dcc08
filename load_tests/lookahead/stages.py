"""What an experiment has found so far, in files: one that was stopped goes on where it was."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import msgspec

from load_tests.lookahead.arms import MOST, Experiment, LookaheadArm, Outcome
from load_tests.lookahead.near_ties import Compared, compare
from load_tests.lookahead.tables import Row

_NAME = "{}-{}.json"


class Stage(msgspec.Struct, frozen=True):
    """What one arm has said, and how that compares with the plain loops."""

    outcome: Outcome
    compared: Compared


class Stages:
    """In `folder`, where the models are as well: those that are trained anew have none of these files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, experiment: Experiment, arm: LookaheadArm) -> Stage:
        """From its file, or else computed, and kept."""
        path = self._folder / _NAME.format(arm.name.replace(" ", "_").replace(",", ""), _digest(experiment, arm))
        if path.is_file():
            return msgspec.json.decode(path.read_bytes(), type=Stage)
        outcome = experiment.look_ahead(arm)
        stage = Stage(outcome, compare(experiment, arm, outcome, len(experiment.tasks)))
        partial = path.with_suffix(".part")
        partial.write_bytes(msgspec.json.encode(stage))
        partial.replace(path)
        return stage


def _digest(experiment: Experiment, arm: LookaheadArm) -> str:
    """Of all that decides what an arm says, but for the models."""
    decides = repr((arm.method, arm.parameters, MOST, [task.prompt for task in experiment.tasks]))
    return blake2b(decides.encode(), digest_size=8).hexdigest()


def compared_cells(stage: Stage) -> Row:
    """For the row of the arm."""
    found = stage.compared
    return {"compared": found.texts, "equal": found.equal, "near_ties": found.excused}
