"""While light tenants are there beside heavy ones, steps compute less of the latter, and nothing else changes. Schedulers are real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.settings import JumpForward
from model_service.tenants.bounds import HERE_S
from model_service.tenants.step_cost import FIT_EVERY
from tests.integration.model_service.jump_forward.played_engine import RECORD, SPECS, Ask, Core, Play
from tests.integration.model_service.running_engine import SETTINGS, prepared_environment
from tests.offered_grammars import offered_specs

SEATS = 8
STEP_S = HERE_S / 4


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with prepared_environment(SETTINGS):
        yield


@pytest.fixture(scope="module")
def channel() -> Iterator[str]:
    with offered_specs(SPECS, GrammarTokenizer.load(SETTINGS.model)) as name:
        yield name


class Watched:
    """What each step computed of each request. Steps take as long as they have rows and tokens, so that heavy rows do matter."""

    def __init__(self, core: Core) -> None:
        self.steps: list[dict[str, int]] = []
        bounds = core.scheduler._steps
        for number in range(FIT_EVERY):
            bounds._cost.add(1 + number % SEATS, number % 50, 1000 * (1 + number % SEATS + number % 50))
        core.scheduler._steps.took = lambda *_: None
        core.scheduler._steps._clock = lambda: len(self.steps) * STEP_S
        self._execute, core.worker.execute = core.worker.execute, self._watch

    def _watch(self, output: Any) -> None:
        self.steps.append(dict(output.num_scheduled_tokens))
        self._execute(output)


def played(play: Play, jump_forward: JumpForward, channel: str) -> tuple[dict[str, list[int]], list[dict[str, int]]]:
    with closing(Core(play, jump_forward, channel)) as core:
        watched = Watched(core)
        answers = core.run()
        assert core.scheduler.kv_cache_manager.usage == 0
        assert core.scheduler.max_num_scheduled_tokens == play.budget
        assert core.scheduler.scheduler_config.long_prefill_token_threshold == 0
        assert not core.scheduler._steps._requests
        return answers, watched.steps


specs, kinds = st.none() | st.integers(0, len(SPECS) - 1), st.sampled_from(["sync", "async"])
heavy = st.builds(Ask, specs, st.integers(1, 120), st.integers(1, 60), st.integers(0, 9), st.none() | st.integers(1, 60), st.just("heavy"))
light = st.builds(
    Ask, specs, st.integers(1, 60), st.integers(1, 30), st.integers(0, 40), st.none(), st.sampled_from(["light", "", "other"])
)
plays = st.builds(
    lambda heavy, light, **others: Play([*heavy, *light], seats=SEATS, **others),
    heavy=st.lists(heavy, min_size=2, max_size=12),
    light=st.lists(light, min_size=1, max_size=4),
    blocks=st.integers(20, 60),
    budget=st.sampled_from([24, 64, 512]),
    caching=st.booleans(),
    forgets=st.just(frozenset()) | st.frozensets(st.integers(1, 60), max_size=2),
    second=st.booleans(),
)


@settings(max_examples=80, deadline=None)
@given(play=plays, kind=kinds)
def test_requests_get_the_same_tokens_in_bounded_steps(channel: str, play: Play, kind: JumpForward) -> None:
    alone = replace(play.calm, asks=[replace(ask, tenant="") for ask in play.calm.asks])
    expected, _ = played(alone, "sync", channel)
    answers, _ = played(play, kind, channel)
    for name, tokens in answers.items():
        ended = play.asks[int(name)].leaves is None
        assert tokens == (expected[name] if ended else expected[name][: len(tokens)])


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_heavy_rows_rest_by_turns_while_a_light_one_is_there(channel: str, kind: JumpForward) -> None:
    rows = [Ask(None, 4, 60, tenant="heavy") for _ in range(7)]
    _, steps = played(Play([*rows, Ask(None, 4, 20, 8, tenant="light")]), kind, channel)
    beside = [step for step in steps if "7" in step and step["7"] == 1]
    assert len(beside) >= 18
    assert all(len(step) == 2 for step in beside)
    for first in range(len(beside) - 7):
        assert len({name for step in beside[first : first + 7] for name in step}) == 8
    assert any(len(step) == 7 for step in steps if "7" not in step)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_light_prompt_is_computed_whole_ahead_of_heavy_ones(channel: str, kind: JumpForward) -> None:
    rows = [Ask(None, 200, 2, tenant="heavy") for _ in range(12)]
    _, steps = played(Play([*rows, Ask(None, 50, 2, 2, tenant="light")], caching=False, budget=256), kind, channel)
    came = next(step for step in steps if "12" in step)
    assert came["12"] == 50
    assert sum(came.values()) <= 50 + 50 + SEATS


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_is_forced_at_the_start_of_a_light_answer_is_computed_with_its_prompt(channel: str, kind: JumpForward) -> None:
    rows = [Ask(None, 200, 2, tenant="heavy") for _ in range(12)]
    light_one = Ask(RECORD, 50, 5, 2, tenant="light")
    _, alone = played(Play([light_one], caching=False), kind, channel)
    _, steps = played(Play([*rows, light_one], caching=False, budget=256), kind, channel)
    whole = next(step["0"] for step in alone if step)
    assert whole > 50
    assert next(step["12"] for step in steps if "12" in step) == whole


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_heavy_prompt_has_no_more_of_a_step_beside_light_prompts_and_goes_on(channel: str, kind: JumpForward) -> None:
    rows = [Ask(None, 200, 2, tenant="heavy") for _ in range(12)]
    others = [Ask(None, 50, 1, arrives, tenant="light") for arrives in range(2, 60)]
    _, steps = played(Play([*rows, *others], caching=False, budget=256), kind, channel)
    beside = [sum(tokens for name, tokens in step.items() if int(name) < 12) for step in steps[2:60]]
    assert sum(tokens <= 20 for tokens in beside) > 45
    assert sum(tokens >= 50 for tokens in beside) >= 2


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_light_request_waits_for_its_grammar_and_not_for_heavy_rows(channel: str, kind: JumpForward) -> None:
    rows = [Ask(None, 4, 90, tenant="heavy") for _ in range(7)]
    _, steps = played(Play([*rows, Ask(0, 4, 5, 8, tenant="light")]), kind, channel)
    came = next(number for number, step in enumerate(steps) if "7" in step)
    assert sum(bool(step.keys() - {"7"}) for step in steps[came:]) > 30  # beside heavy rows, which go on for longer


def test_nobody_is_bounded_by_himself(channel: str) -> None:
    rows = [Ask(None, 4, 30, tenant="heavy") for _ in range(8)]
    _, steps = played(Play(rows), "sync", channel)
    assert [len(step) for step in steps if step] == [8] * 30


def test_a_light_tenant_is_there_for_a_while_after_its_last_request(channel: str) -> None:
    rows = [Ask(None, 4, 60, tenant="heavy") for _ in range(7)]
    _, steps = played(Play([*rows, Ask(None, 4, 5, 8, tenant="light")]), "sync", channel)
    left = max(number for number, step in enumerate(steps) if "7" in step) + 1
    assert all(len(step) < 7 for step in steps[left : left + 3])
    assert len(steps[left + 5]) == 7
