"""The simulation keeps its books: nobody is lost, time adds up, and the same seed plays the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from router.simulation.engine import Answered, Engine, EngineModel
from router.simulation.figures import Figures
from router.simulation.policies import CONSISTENT, MASKCAST, POLICIES, POWER_OF_TWO, PowerOfTwo
from router.simulation.scenarios import BURST, FAILURES, STEADY, Size, recorded, synthetic
from router.simulation.traffic import Burst, Request, Traffic, arrivals, read_trace
from router.simulation.world import Hang, Outcome, Scenario, World

MODEL = EngineModel(step_s=0.01, token_s=0.0001, row_s=0.001, prefill_budget=100, seats=2, resident=2)
SMALL = Size(replicas=10, schemas=200, seconds=1.8, rate=25.0, zipf=1.4)


def request(name: str, key: str | None = None, prompt: int = 100, output: int = 3) -> Request:
    return Request(name, 0.0, key, prompt, output)


def engine_of(model: EngineModel) -> Engine:
    return Engine(model, Random(1))


def played(engine: Engine, now: float = 0.0) -> list[Answered]:
    """All that the engine answers when it is left alone."""
    answered: list[Answered] = []
    while engine.next_at is not None:
        answered += engine.play(engine.next_at)
    return answered


def test_a_request_takes_its_prefill_and_a_step_for_each_further_token() -> None:
    engine = engine_of(MODEL)
    engine.arrive(request("one"), 0.0)
    first, last = played(engine)
    assert (first.done, last.done) == (False, True)
    assert first.at_s == pytest.approx(0.01 + 100 * 0.0001)
    assert last.at_s == pytest.approx(first.at_s + 2 * (0.01 + 0.0001))
    assert engine.counts.steps == 3
    assert engine.requests == []


def test_a_long_prompt_is_prefilled_in_several_steps() -> None:
    engine = engine_of(MODEL)
    engine.arrive(request("long", prompt=250, output=1), 0.0)
    first, last = played(engine)
    assert first.at_s == last.at_s == pytest.approx(3 * 0.01 + 250 * 0.0001)


def test_who_finds_no_seat_waits_for_one() -> None:
    engine = engine_of(MODEL)
    for name in ("one", "two", "three"):
        engine.arrive(request(name), 0.0)
    answered = engine.play(engine.next_at or 0.0)
    assert (engine.running, engine.waiting) == (2, 1)
    done = [one.request.name for one in (*answered, *played(engine)) if one.done]
    assert done == ["one", "two", "three"]


def test_a_newcomer_is_admitted_at_the_end_of_the_step_that_runs() -> None:
    engine = engine_of(MODEL)
    engine.arrive(request("one", output=1000), 0.0)
    engine.play(engine.next_at or 0.0)
    began = 0.01 + 100 * 0.0001
    engine.arrive(request("two"), began + 0.025)
    assert engine.next_at == pytest.approx(began + 3 * (0.01 + 0.0001))


def test_a_grammar_is_loaded_once_and_forgotten_when_others_were_used_since() -> None:
    engine = engine_of(MODEL)
    assert engine.arrive(request("one", "a"), 0.0)
    assert not engine.arrive(request("two", "a"), 0.0)
    assert engine.next_at is None
    engine.loaded("a", 0.009)
    assert not engine.arrive(request("three", "a"), 0.01)
    for key in "bc":
        assert engine.arrive(request(key, key), 0.02)
        engine.loaded(key, 0.03)
    assert engine.resident == 2
    assert engine.arrive(request("four", "a"), 0.04)
    assert engine.counts.loads == 4


def test_requests_of_one_grammar_share_mask_rows() -> None:
    apart, together = engine_of(MODEL), engine_of(MODEL)
    for engine, keys in ((apart, "ab"), (together, "aa")):
        for number, key in enumerate(keys):
            engine.arrive(request(str(number), key, prompt=50), 0.0)
        for key in sorted(set(keys)):
            engine.loaded(key, 0.0)
        played(engine)
    assert apart.counts.rows == pytest.approx(2 + 2)
    assert together.counts.rows == pytest.approx(2 * (2 - 1 / 16))


def test_a_slower_engine_takes_as_many_times_as_long() -> None:
    engine = engine_of(MODEL.slower(3.0))
    engine.arrive(request("one", output=1), 0.0)
    assert played(engine)[-1].at_s == pytest.approx(3 * (0.01 + 100 * 0.0001))


def test_steps_vary_about_their_mean_and_those_of_one_pace_alike() -> None:
    noisy = replace(MODEL, noise=0.5, noise_s=0.2)
    engine, ended = engine_of(noisy), [0.0]
    engine.arrive(request("long", prompt=1, output=100_000), 0.0)
    while (at_s := engine.next_at) is not None and len(ended) < 2000:
        ended.append(at_s)
        engine.play(at_s)
    steps, seconds = engine.counts.steps, engine.counts.busy_s
    assert seconds == pytest.approx(ended[-1])
    # Each pace lasts for as long: slow ones make fewer steps, so that the median of all is below the mean of paces.
    assert steps / seconds == pytest.approx(np.exp(0.5**2) / (0.01 + 0.0001), rel=0.1)
    assert np.diff(ended).max() < 0.2 + 0.1


def test_the_same_random_numbers_make_the_same_noise() -> None:
    noisy, ends = replace(MODEL, noise=0.5), []
    for seed in (1, 1, 2):
        engine = Engine(noisy, Random(seed))
        engine.arrive(request("one", output=1000), 0.0)
        ends.append(played(engine)[-1].at_s)
    assert ends[0] == ends[1] != ends[2]


def test_an_engine_that_hangs_takes_requests_and_answers_none() -> None:
    engine = engine_of(MODEL)
    engine.arrive(request("before"), 0.0)
    engine.hang()
    engine.arrive(request("after"), 0.0)
    assert engine.arrive(request("keyed", "a"), 0.0)
    engine.loaded("a", 0.009)
    assert engine.next_at is None
    assert {one.name for one in engine.requests} == {"before", "after", "keyed"}


def test_popularity_follows_the_exponent() -> None:
    drawn = arrivals(Traffic(10, 2000, 100, zipf=1.0, unkeyed=0.2), 1)
    count = [sum(one.key == f"schema-1-{rank}" for one in drawn) for rank in (0, 1)]
    assert sum(one.key is None for one in drawn) == pytest.approx(0.2 * len(drawn), rel=0.1)
    assert count[0] == pytest.approx(2 * count[1], rel=0.15)
    assert [one.at_s for one in drawn] == sorted(one.at_s for one in drawn)


def test_a_burst_comes_in_handfuls_of_one_grammar() -> None:
    drawn = arrivals(Traffic(2, 0, 10, bursts=[Burst(1.0, 40, 3, 0.2, 16)]), 1)
    assert {one.key for one in drawn} == {"schema-1-3"}
    assert [sum(one.at_s == at_s for one in drawn) for at_s in sorted({one.at_s for one in drawn})] == [16, 16, 8]


def test_prompts_may_begin_alike_whatever_their_schema() -> None:
    drawn = arrivals(Traffic(2, 500, 10, unkeyed=0.2, shared_prefixes=3), 1)
    assert len({one.prefix for one in drawn}) == 3
    assert len({(one.key, one.prefix) for one in drawn}) == 3 * 11


def test_in_a_closed_loop_each_client_asks_again_when_it_is_answered() -> None:
    asked = [Request(str(number), 0.0, None, 100, 1) for number in range(6)]
    outcome = World(Scenario("closed", asked, 2, routers=1, engine=MODEL, clients=1), POWER_OF_TWO).run()
    took = 0.01 + 100 * 0.0001
    assert outcome.latencies_s == pytest.approx([took] * 6)
    assert (outcome.last_s, outcome.ended_s) == pytest.approx((5 * took, 6 * took))
    assert outcome.answered_in_time == 5


def test_who_is_caught_by_a_replica_that_hangs_is_sent_again_and_waits_apart() -> None:
    asked = [Request(str(number), 0.1 * number, None, 100, 1) for number in range(50)]
    outcome = World(Scenario("hang", asked, 2, routers=1, engine=MODEL, hang=Hang(1.0, 20.0)), POWER_OF_TWO).run()
    assert outcome.sent_again > 0
    assert outcome.lost == 0
    assert outcome.ended_s > 21.0
    assert len(outcome.waits_s) == 50 - outcome.sent_again
    assert max(outcome.waits_s) < 1.0


def test_a_policy_that_sends_nothing_loses_everybody_and_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PowerOfTwo, "tick", lambda self, now: [])
    outcome = World(Scenario("lost", [request("one")], 2), POWER_OF_TWO).run()
    assert (outcome.lost, outcome.waits_s) == (1, [])


def test_a_recorded_trace_is_played_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    later = {"at_s": 0.5, "key": None, "prompt_tokens": 10, "output_tokens": 2}
    sooner = {"at_s": 0.1, "key": "k", "prompt_tokens": 9, "output_tokens": 1}
    path.write_text(f"{json.dumps(later)}\n\n{json.dumps(sooner)}\n", encoding="utf-8")
    requests = read_trace(path)
    assert [(one.at_s, one.key) for one in requests] == [(0.1, "k"), (0.5, None)]
    (scenario,) = recorded(SMALL, requests)
    assert len(World(scenario, MASKCAST).run().waits_s) == 2


@pytest.mark.parametrize("line", ["{", "[]", '{"at_s": 1}', '{"at_s": -1, "key": null, "prompt_tokens": 1, "output_tokens": 1}'])
def test_a_trace_that_is_none_says_in_which_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(ValueError, match="line 1"):
        read_trace(path)


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], tuple[Scenario, Outcome]]:
    return {
        (scenario.name, policy): (scenario, World(scenario, policy, seed=1).run())
        for scenario in synthetic(SMALL, 1)[:4]
        for policy in POLICIES
    }


Outcomes = dict[tuple[str, str], tuple[Scenario, Outcome]]


def test_everyone_is_answered_whatever_fails_or_joins(outcomes: Outcomes) -> None:
    for scenario, outcome in outcomes.values():
        assert len(outcome.waits_s) == sum(one.at_s >= scenario.warm_up_s for one in scenario.requests)
        assert min(outcome.waits_s) > 0
    assert outcomes[FAILURES, MASKCAST][1].sent_again > 0
    assert outcomes[STEADY, MASKCAST][1].sent_again == 0


def test_the_other_scenarios_end_with_everyone_answered_as_well() -> None:
    """Those of the fixture are the first ones."""
    tiny = Size(replicas=8, schemas=200, seconds=1.0, rate=10.0)
    for scenario in synthetic(tiny, 3)[4:]:
        outcome = World(scenario, MASKCAST, seed=3).run()
        assert outcome.lost == 0
        assert outcome.latencies_s


def test_the_same_seed_plays_the_same(outcomes: Outcomes) -> None:
    scenario, outcome = outcomes[BURST, MASKCAST]
    assert World(scenario, MASKCAST, seed=1).run() == outcome


def test_routing_by_schema_keeps_grammars_together_and_the_bound_keeps_waits_short(outcomes: Outcomes) -> None:
    at = {policy: Figures.of(*_with_policy(outcomes, policy)) for policy in POLICIES}
    ours, even, bare = at[MASKCAST], at[POWER_OF_TWO], at[CONSISTENT]
    assert ours.resident < 0.8 * even.resident
    assert ours.rows_per_step < even.rows_per_step
    assert ours.fetched < 0.5 * even.fetched
    assert ours.imbalance < 0.5 * bare.imbalance
    assert ours.wait_p99_ms < 0.75 * bare.wait_p99_ms


def _with_policy(outcomes: Outcomes, policy: str) -> tuple[Scenario, str, Outcome]:
    scenario, outcome = outcomes[STEADY, policy]
    return scenario, policy, outcome


def test_what_is_reported_late_does_not_make_routers_chase_each_other() -> None:
    """With reports alone all routers see the same replica idle, and fill it."""
    (scenario, *_) = synthetic(replace(SMALL, seconds=3.0), 2)
    many = replace(scenario, routers=6, report_s=1.0)
    alone = _p99(World(replace(scenario, routers=1, report_s=1.0), MASKCAST).run().waits_s)
    assert _p99(World(many, MASKCAST).run().waits_s) < 1.5 * alone


def _p99(waits: Sequence[float]) -> float:
    return float(np.quantile(waits, 0.99))
