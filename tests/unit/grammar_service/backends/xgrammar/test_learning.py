from __future__ import annotations

import os
import threading

import pytest

from grammar_service.backends.xgrammar.cost import DEAR_MS
from grammar_service.backends.xgrammar.learning import RuleLearning

PATIENCE_S = 30.0


def test_dear_grammars_are_compiled_behind_all_other_work() -> None:
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    priorities: list[int] = []
    learnt = threading.Event()

    def compile_it() -> None:
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        learnt.set()

    RuleLearning().learn(compile_it, DEAR_MS)
    assert learnt.wait(PATIENCE_S)
    assert priorities == [19]
    assert os.getpriority(os.PRIO_PROCESS, 0) == usual


@pytest.mark.parametrize("compile_ms", [DEAR_MS - 1, 501.0])
def test_what_is_cheap_or_takes_too_long_is_not_learnt(compile_ms: float) -> None:
    learnt, other = threading.Event(), threading.Event()
    learning = RuleLearning(most_ms=500.0)
    learning.learn(learnt.set, compile_ms)
    learning.learn(other.set, DEAR_MS)
    assert other.wait(PATIENCE_S)
    assert not learnt.is_set()


def test_what_comes_while_enough_waits_is_passed_over_and_a_failure_makes_room() -> None:
    begun, go_on, last = threading.Event(), threading.Event(), threading.Event()
    learnt: list[str] = []
    learning = RuleLearning(most_waiting=2)

    def fail() -> None:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        raise ValueError("does not compile here")

    learning.learn(fail, DEAR_MS)
    learning.learn(lambda: learnt.append("second"), DEAR_MS)
    learning.learn(lambda: learnt.append("passed over"), DEAR_MS)
    assert begun.wait(PATIENCE_S)
    go_on.set()
    while not last.is_set():
        learning.learn(last.set, DEAR_MS)
    assert learnt == ["second"]
