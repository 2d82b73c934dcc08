"""The router in a real Ray Serve, before replicas without an engine."""

from __future__ import annotations

from collections import Counter

import pytest
import ray
from ray import serve

from tests.e2e.service import wait_for
from tests.integration.router.fleet import KEYS, REPLICAS, Deploy, Fleet, delete, routed
from tests.integration.router.light_replica import (
    OTHERS,
    BrokenRouter,
    Caller,
    Light,
    LightCall,
    LightWithStats,
    RecordingDispatcher,
    RecordingRouter,
    new_gate,
)

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("ray_serve")]


def test_a_key_has_its_replica_and_keys_spread(fleet: Fleet) -> None:
    homes = fleet.homes(KEYS)
    assert len(set(homes.values())) == REPLICAS
    for _ in range(3):
        assert fleet.homes(KEYS) == homes


def test_side_by_side_calls_of_a_key_meet_in_one_replica(fleet: Fleet) -> None:
    home = fleet.homes(KEYS[:1])[KEYS[0]]
    calls = [fleet.send(KEYS[0]) for _ in range(8)]
    assert {call.result(timeout_s=60) for call in calls} == {home}


def test_a_hot_key_spills_over_and_nobody_waits_for_its_replica(deploy: Deploy) -> None:
    fleet = deploy(max_ongoing_requests=3)
    calls = [fleet.send(KEYS[0], LightCall(held=True)) for _ in range(3 * REPLICAS)]
    assert len(ray.get(fleet.gate.arrived.remote(len(calls)), timeout=60)) == len(calls)
    ray.get(fleet.gate.open.remote())
    assert Counter(call.result(timeout_s=60) for call in calls).most_common(1)[0][1] == 3


def test_calls_without_a_key_spread(fleet: Fleet) -> None:
    calls = fleet.hold(40)
    ray.get(fleet.gate.open.remote())
    assert len({call.result(timeout_s=60) for call in calls}) == REPLICAS


def test_the_keys_of_a_dead_replica_move_and_no_others(deploy: Deploy) -> None:
    fleet = deploy(starts=REPLICAS)
    before = fleet.homes(KEYS)
    victim = before[KEYS[0]]
    end = fleet._handle.options(session_id=KEYS[0]).end.remote()
    with pytest.raises(ray.exceptions.RayActorError):
        end.result(timeout_s=60)
    meanwhile = fleet.homes(KEYS)
    assert victim not in meanwhile.values()
    assert {key: home for key, home in meanwhile.items() if before[key] != victim} == {
        key: home for key, home in before.items() if home != victim
    }
    ray.get(fleet.gate.admit.remote())
    wait_for(lambda: len(fleet.router.dispatcher.fleet) == REPLICAS, 60, "the replacement")
    (replacement,) = set(fleet.router.dispatcher.fleet.ids) - set(before.values())
    after = fleet.homes(KEYS)
    assert all(home in {meanwhile[key], replacement} for key, home in after.items())
    assert replacement in after.values()


def test_a_replica_that_failed_a_call_is_avoided_by_it(fleet: Fleet) -> None:
    homes = fleet.homes(KEYS)
    assert all(fleet.send(key, LightCall(avoid=home)).result(timeout_s=60) != home for key, home in homes.items())


def test_a_full_deployment_backs_off_and_then_answers(deploy: Deploy) -> None:
    fleet = deploy(max_ongoing_requests=1)
    held = fleet.hold(REPLICAS)
    late = [fleet.send(key) for key in (*KEYS[:6], "", "")]
    wait_for(lambda: fleet.router.num_routing_tasks_in_backoff > 0, 30, "the router to back off")
    ray.get(fleet.gate.open.remote())
    assert {call.result(timeout_s=60) for call in (*held, *late)} <= set(fleet.router.dispatcher.fleet.ids)


def test_a_call_without_a_key_waits_for_a_seat_as_all_do(deploy: Deploy) -> None:
    fleet = deploy(replicas=1, limits={"seats": 1})
    held = fleet.hold(1)
    late = fleet.send("")
    wait_for(lambda: len(fleet.router._waiting_room) == 1, 30, "the call to wait in the router")
    ray.get(fleet.gate.open.remote())
    assert {call.result(timeout_s=60) for call in (*held, late)} == set(fleet.router.dispatcher.fleet.ids)


def test_cancelled_calls_leave_nothing_behind(deploy: Deploy) -> None:
    fleet = deploy(max_ongoing_requests=1, limits={"prefill_budget": 64})
    fleet.hold(REPLICAS)
    waiting = [fleet.send(key, LightCall(prompt_tokens=1000)) for key in (*KEYS[:3] * 4, "")]
    wait_for(lambda: len(fleet.router._tickets) == len(waiting), 30, "the calls to wait in the router")
    for call in waiting:
        call.cancel()
    fleet.settle(left=REPLICAS)


def test_waiting_groups_are_released_together(deploy: Deploy) -> None:
    fleet = deploy(LightWithStats, replicas=1, router=RecordingRouter, limits={"seats": 8})
    policy = fleet.router.dispatcher
    assert isinstance(policy, RecordingDispatcher)
    (held,) = fleet.hold(1)
    wait_for(lambda: policy._board.taken(policy.fleet.ids[0]) == OTHERS + 1, 30, "the replica to tell that it is full")
    policy.released.clear()
    calls = [fleet.send(KEYS[number % 2]) for number in range(8)]
    wait_for(lambda: len(fleet.router._waiting_room) == len(calls), 30, "the calls to wait in the router")
    ray.get(fleet.gate.open.remote())
    assert len({call.result(timeout_s=60) for call in (held, *calls)}) == 1
    assert policy.released == [4, 4]


def test_replicas_report_and_those_that_do_not_are_used_as_well(fleet: Fleet, deploy: Deploy) -> None:
    assert fleet.reporting == set()
    assert len(set(fleet.homes(KEYS).values())) == REPLICAS
    telling = deploy(LightWithStats)
    wait_for(lambda: len(telling.reporting) == REPLICAS, 30, "every replica's report")
    assert len(set(telling.homes(KEYS).values())) == REPLICAS


def test_calls_that_one_request_makes_side_by_side_are_all_answered(ray_serve: None) -> None:
    gate = new_gate()
    light = serve.deployment(name="light", num_replicas=2, ray_actor_options={"num_cpus": 0}, request_router_config=routed())(Light)
    caller = serve.deployment(name="caller", ray_actor_options={"num_cpus": 0})(Caller)
    handle = serve.run(caller.bind(light.bind(gate)), name="calling", route_prefix=None)
    try:
        assert len(handle.answers.remote([*KEYS, *[""] * 10]).result(timeout_s=60)) == len(KEYS) + 10
    finally:
        delete("calling")


def test_a_policy_that_fails_is_replaced_by_power_of_two(ray_serve: None) -> None:
    gate = new_gate()
    light = serve.deployment(name="light", num_replicas=2, ray_actor_options={"num_cpus": 0}, request_router_config=routed(BrokenRouter))(
        Light
    )
    handle = serve.run(light.bind(gate), name="broken", route_prefix=None)
    try:
        answers = [handle.options(session_id=key).answer.remote(LightCall()).result(timeout_s=60) for key in (*KEYS, "")]
        assert len(set(answers)) == 2
    finally:
        delete("broken")
