"""Jumping where a step is scheduled before the one ahead of it is over: requests get the tokens that they get in steps one by one, each
place is computed with the token that stands there in the end, and a segment costs one forward more. The schedulers are real ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from model_service.settings import JumpForward
from tests.integration.model_service.jump_forward.played_engine import BLOCK, CONTEXT, FORCED, SPECS, Ask, Core, Play
from tests.integration.model_service.running_engine import SETTINGS, prepared_environment
from tests.offered_grammars import offered_specs


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with prepared_environment(SETTINGS):
        yield


@pytest.fixture(scope="module")
def channel() -> Iterator[str]:
    with offered_specs(SPECS, GrammarTokenizer.load(SETTINGS.model)) as name:
        yield name


def played(play: Play, jump_forward: JumpForward, channel: str) -> tuple[dict[str, list[int]], Core]:
    with closing(Core(play, jump_forward, channel)) as core:
        return core.run(), core


asks = st.builds(
    Ask,
    spec=st.none() | st.integers(0, len(SPECS) - 1),
    prompt=st.integers(1, 60),
    most=st.integers(1, 90),
    arrives=st.integers(0, 20),
    leaves=st.none() | st.none() | st.integers(1, 60),
)
plays = st.builds(
    Play,
    asks=st.lists(asks, min_size=1, max_size=10),
    blocks=st.integers(12, 40),
    budget=st.sampled_from([8, 24, 64, 512]),
    seats=st.integers(1, 8),
    caching=st.booleans(),
    forgets=st.just(frozenset()) | st.frozensets(st.integers(1, 60), max_size=3),
    second=st.booleans(),
)


def test_requests_get_the_same_tokens_whatever_becomes_of_them(channel: str) -> None:
    preemptions = []

    @settings(max_examples=120, deadline=None)
    @given(play=plays)
    def each(play: Play) -> None:
        expected, _ = played(play.calm, "sync", channel)
        answers, core = played(play, "async", channel)
        for name, tokens in answers.items():
            ended = play.asks[int(name)].leaves is None
            assert tokens == (expected[name] if ended else expected[name][: len(tokens)])
        assert core.scheduler.kv_cache_manager.usage == 0
        preemptions.append(sum(request.num_preemptions for request in core.requests.values()))

    each()
    assert sum(preemptions) > 0


together = st.lists(st.builds(Ask, spec=st.integers(0, len(SPECS) - 1), prompt=st.integers(1, 60), most=st.integers(1, 90)), max_size=8)


@settings(max_examples=40, deadline=None)
@given(play=st.builds(Play, asks=together, second=st.booleans()))
def test_a_segment_costs_one_forward_more_than_in_synchronous_steps(channel: str, play: Play) -> None:
    answers, core = played(play, "sync", channel)
    same, overlapping = played(play, "async", channel)
    assert same == answers
    assert overlapping.worker.segments == core.worker.segments
    for number, ask in enumerate(play.asks):
        name = str(number)
        # That an answer ends is known one step late, unless it is as long as it may be with a token that is asked for.
        late = core.worker.sampled[name] < ask.most
        assert overlapping.worker.seats[name] == core.worker.seats[name] + core.worker.segments[name] + late


@pytest.mark.parametrize("jump_forward", ["sync", "async"])
@pytest.mark.parametrize("second", [False, True])
def test_forced_beginnings_are_not_computed_again(channel: str, jump_forward: JumpForward, second: bool) -> None:
    """The prompt alone is less than a block."""
    prompt = BLOCK // 2
    asks = [Ask(FORCED, prompt, CONTEXT - prompt, arrives) for arrives in (0, 40)]
    answers, core = played(Play(asks, second=second), jump_forward, channel)
    assert answers["0"] == answers["1"]
    blocks, rest = divmod(core.worker.computed["0"] - core.worker.computed["1"], BLOCK)
    assert (blocks > 0, rest) == (True, 0)
    _, without = played(Play(asks, second=second, caching=False), jump_forward, channel)
    assert without.worker.computed["0"] == without.worker.computed["1"] == core.worker.computed["0"]
