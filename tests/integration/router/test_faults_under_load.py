"""Replicas die, join and hang while calls come in: every call is answered or fails cleanly, and traffic goes on elsewhere."""

from __future__ import annotations

import os
import signal

import pytest
import ray

from tests.e2e.service import wait_for
from tests.integration.router.fleet import KEYS, REPLICAS, Deploy, Fleet
from tests.integration.router.load import load

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("ray_serve")]
BACK_S = 60.0
"""Traffic is to be back by then."""
FEW, MANY = 8, 40
"""Callers: so few that no replica is over its share, and so many that all are busy."""


def kept(homes: dict[str, str], lost: str) -> dict[str, str]:
    return {key: home for key, home in homes.items() if home != lost}


def known(fleet: Fleet) -> set[str]:
    return set(fleet.router.dispatcher.fleet.ids)


def test_a_killed_replica_loses_its_keys_to_others_and_no_call_goes_unanswered(deploy: Deploy) -> None:
    fleet = deploy(starts=REPLICAS)
    before = fleet.homes(KEYS)
    victim, process = fleet.process(KEYS[0])
    with load(fleet, KEYS, FEW) as calls:
        calls.homes(KEYS, BACK_S)
        os.kill(process, signal.SIGKILL)
        calls.homes(KEYS, BACK_S, apart_from=victim)
    after = fleet.homes(KEYS)
    assert victim not in after.values()
    assert kept(before, victim).items() <= after.items()
    lost = [one for one in calls.called if not one.replica]
    assert {before[one.key] for one in lost} <= {victim}
    assert len(lost) <= FEW
    ray.get(fleet.gate.admit.remote())


def test_a_replica_that_joins_takes_its_share_of_keys_and_no_call_fails(deploy: Deploy) -> None:
    fleet = deploy(starts=REPLICAS)
    os.kill(fleet.process(KEYS[0])[1], signal.SIGKILL)
    wait_for(lambda: len(known(fleet)) == REPLICAS - 1, 60, "the router to know of the loss")
    before = fleet.homes(KEYS)
    with load(fleet, KEYS, FEW) as calls:
        calls.homes(KEYS, BACK_S)
        ray.get(fleet.gate.admit.remote())
        wait_for(lambda: len(known(fleet)) == REPLICAS, 60, "the router to know the new replica")
        (joined,) = known(fleet) - set(before.values())
        wait_for(lambda: any(one.replica == joined for one in calls.called), BACK_S, "the new replica to answer")
    after = fleet.homes(KEYS)
    moved = {key for key in KEYS if after[key] != before[key]}
    assert {after[key] for key in moved} == {joined}
    assert len(moved) <= len(KEYS) / 2
    assert all(one.replica for one in calls.called)


def test_a_replica_that_hangs_keeps_only_what_it_had_and_its_keys_are_answered_elsewhere(deploy: Deploy) -> None:
    fleet = deploy()
    victim, process = fleet.process(KEYS[0])
    with load(fleet, KEYS, MANY) as calls:
        calls.homes(KEYS, BACK_S)
        os.kill(process, signal.SIGSTOP)
        try:
            for _ in range(3):
                calls.homes(KEYS, BACK_S, apart_from=victim)
        finally:
            os.kill(process, signal.SIGCONT)
        wait_for(lambda: any(one.replica == victim for one in calls.called[-2 * MANY :]), BACK_S, "the replica to answer again")
    assert all(one.replica for one in calls.called)
    assert victim in known(fleet)
