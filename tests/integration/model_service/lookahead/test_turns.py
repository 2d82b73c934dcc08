"""Ways to decode in turn on one engine: every text is that of plain loops, one at a time and many at once, and the core counts one forward
for each verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import pytest

from load_tests.lookahead.arms import APPX, CDLH, CDSL, KEEPING, REUSING, Experiment, LookaheadArm, Task
from load_tests.lookahead.concept_sets import concept_sets
from load_tests.lookahead.driving import Logits
from load_tests.lookahead.near_ties import Loop, compare, loops
from load_tests.lookahead.served.turns import BY_THEMSELVES, FORWARDS, Way, take_turns
from model_service.lookahead import Stop
from model_service.lookahead.instructions import Tokens
from tests.integration.model_service.lookahead.asking import END
from tests.integration.model_service.lookahead.expected import LIMIT, tokenizer
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import RunningEngine

TASKS = 3
ARMS: tuple[LookaheadArm | None, ...] = (None, CDLH, APPX, CDSL, KEEPING, *REUSING)


@dataclass(frozen=True)
class Language:
    model: TorchModel

    def logits(self, texts: Sequence[Tokens], last: Sequence[int]) -> list[Logits]:
        assert set(last) == {1}
        return [self.model.logits(text)[None] for text in texts]


@pytest.fixture(scope="module")
def experiment(torch_model: TorchModel, torch_draft: TorchModel) -> Experiment:
    tasks = [Task(drawn, tokenizer()) for drawn in islice(concept_sets(5, held_out=True, least=3), TASKS)]
    return Experiment(Language(torch_model), Language(torch_draft), tasks, Stop(LIMIT, frozenset({END})))


@pytest.fixture(scope="module")
def expected(experiment: Experiment) -> dict[LookaheadArm | None, list[Loop]]:
    return {arm: loops(experiment, arm) for arm in ARMS}


@pytest.mark.parametrize("at_once", [1, 32])
def test_texts_are_those_of_plain_loops_and_each_verification_is_a_forward(
    drafted: RunningEngine, experiment: Experiment, expected: dict[LookaheadArm | None, list[Loop]], at_once: int
) -> None:
    told: list[int] = []
    turns = drafted._run(take_turns(drafted.engine, Way("drafted", BY_THEMSELVES, at_once), experiment.tasks, ARMS, told.append, LIMIT))
    assert sum(told) == TASKS * len(ARMS)
    for arm, served in zip(ARMS, turns, strict=True):
        found = compare(expected[arm], served.said)
        assert found.wrong == 0
        assert found.equal >= TASKS - 1
        assert served.milliseconds > 0
    by_verifications = [served for arm, served in zip(ARMS, turns, strict=True) if arm in (APPX, CDSL, KEEPING)]
    for served in by_verifications:
        if at_once == 1:
            assert served.counted[FORWARDS] == served.counted["target_steps"]
        else:
            assert served.counted[FORWARDS] < served.counted["target_steps"]
