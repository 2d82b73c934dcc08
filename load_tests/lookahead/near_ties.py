"""Compares texts with what the plain loops of `tests/unit/model_service/lookahead/reference.py` say, one text at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from load_tests.lookahead.arms import Experiment, LookaheadArm
from load_tests.lookahead.driving import LanguageModel
from load_tests.lookahead.driving import Logits as Row
from model_service.lookahead import Method, Parameters, Rejection
from model_service.lookahead.instructions import Tokens
from tests.unit.model_service.lookahead.reference import Logits, Reference

NEAR = 1e-3
"""Logits: what two forwards of other shapes may differ by, and much less than what sets tokens apart."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What a plain loop says for one task. `near`: the lengths of the text at which two tokens were as good as equal, those in look-aheads
    among them; what is decided at one place looks at up to `reach` tokens more, or keeps as many."""

    said: Tokens
    near: list[int]
    reach: int


@dataclass(frozen=True, slots=True)
class Compared:
    """`excused`: other texts, where two tokens were as good as equal so near to where they part that it may come from that."""

    texts: int
    equal: int
    excused: int

    @property
    def wrong(self) -> int:
        return self.texts - self.equal - self.excused


class Once:
    """A model that computes each text by itself, as the plain loops ask, and no text twice: those of other arms are often the same."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._known: dict[Tokens, list[Row]] = {}

    def logits(self, texts: Sequence[Tokens], last: Sequence[int]) -> list[Row]:
        (text,) = texts
        assert list(last) == [1]
        if text not in self._known:
            self._known[text] = self._model.logits(texts, last)
        return self._known[text]


def loops(experiment: Experiment, arm: LookaheadArm | None) -> list[Loop]:
    """Of every task; `arm` None: greedily. Whether an arm reuses look-aheads makes no difference."""
    target, draft = _alone(experiment.target), _alone(experiment.draft)
    of = Parameters() if arm is None else arm.parameters
    found: list[Loop] = []
    for number, task in enumerate(experiment.tasks):
        reference = Reference(target, draft, task.prompt, task.reward, experiment.stop.most, experiment.stop.ends, of.d, of.k)
        said = _said(reference, arm, number)
        near = sorted({length for length, margin in reference.margins if margin < NEAR})
        found.append(Loop(said, near, 0 if arm is None else reference.d + 1))
    return found


def compare(expected: Sequence[Loop], said: Sequence[Tokens]) -> Compared:
    """Task by task."""
    equal = excused = 0
    for loop, text in zip(expected, said, strict=True):
        if loop.said == text:
            equal += 1
            continue
        short = min(len(loop.said), len(text))
        parted = next((n for n, (a, b) in enumerate(zip(loop.said, text, strict=False)) if a != b), short)
        excused += any(abs(length - parted) <= loop.reach for length in loop.near)
    return Compared(len(said), equal, excused)


def _alone(model: LanguageModel) -> Logits:
    return lambda text: model.logits([tuple(text)], [1])[0][0]


def _said(reference: Reference, arm: LookaheadArm | None, seed: int) -> Tokens:
    if arm is None:
        return reference.greedy()
    if arm.method is not Method.CDSL:
        return reference.cdlh() if arm.method is Method.CDLH else reference.cdlh_appx()
    of = arm.parameters
    return reference.cdsl(of.a_t, of.r_t, of.b, of.keep_drafts, Random(seed) if of.rejection is Rejection.SAMPLING else None)
