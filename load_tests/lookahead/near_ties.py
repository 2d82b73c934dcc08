"""Compares what machines said with what the plain loops of `tests/unit/model_service/lookahead/reference.py` say, one text at a time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from load_tests.lookahead.arms import Experiment, LookaheadArm, Outcome
from load_tests.lookahead.driving import LanguageModel
from model_service.lookahead import Method, Rejection
from tests.unit.model_service.lookahead.reference import Logits, Reference

NEAR = 1e-3
"""Logits: what two forwards of other shapes may differ by, and much less than what sets tokens apart."""


@dataclass(frozen=True, slots=True)
class Compared:
    """`excused`: other texts, where two tokens were as good as equal before or when they part."""

    texts: int
    equal: int
    excused: int

    @property
    def wrong(self) -> int:
        return self.texts - self.equal - self.excused


def compare(experiment: Experiment, arm: LookaheadArm, outcome: Outcome, most: int) -> Compared:
    """The first `most` tasks."""
    equal = excused = 0
    stop = experiment.stop
    target, draft = _alone(experiment.target), _alone(experiment.draft)
    tasks = experiment.tasks[:most]
    for number, (task, said) in enumerate(zip(tasks, outcome.said, strict=False)):
        d, k = arm.parameters.d, arm.parameters.k
        reference = Reference(target, draft, task.prompt, task.reward, stop.most, stop.ends, d=d, k=k)
        expected = _said(reference, arm, number)
        if expected == said:
            equal += 1
        else:
            parted = next((n for n, (a, b) in enumerate(zip(expected, said, strict=False)) if a != b), min(len(expected), len(said)))
            # A look-ahead from where they part reaches d + 1 tokens beyond.
            excused += any(margin < NEAR for length, margin in reference.margins if length <= parted + d + 1)
    return Compared(len(tasks), equal, excused)


def _alone(model: LanguageModel) -> Logits:
    return lambda text: model.logits([tuple(text)], [1])[0][0]


def _said(reference: Reference, arm: LookaheadArm, seed: int) -> tuple[int, ...]:
    if arm.method is not Method.CDSL:
        return reference.cdlh() if arm.method is Method.CDLH else reference.cdlh_appx()
    of = arm.parameters
    return reference.cdsl(of.a_t, of.r_t, of.b, of.keep_drafts, Random(seed) if of.rejection is Rejection.SAMPLING else None)
