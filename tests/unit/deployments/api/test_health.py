"""What /readyz tells costs Ray Serve's controller little, however often it is asked."""

from __future__ import annotations

import threading

from deployments.api.health import KEPT_S, HealthReader
from deployments.names import COMPILER, MODEL
from tests.unit.deployments.api.http.test_background import Ingress
from tests.unit.router.clock import Clock


class Controller:
    def __init__(self) -> None:
        self.asked = 0
        self.told = {MODEL: 1, COMPILER: 2}

    def running(self) -> dict[str, int]:
        self.asked += 1
        return self.told


async def test_the_controller_is_asked_once_a_second_at_most() -> None:
    controller, clock = Controller(), Clock()
    reader = HealthReader(controller.running, {MODEL: 1, COMPILER: 2}, None, clock)
    for _ in range(100):
        assert (await reader.read()).body()["status"] == "ready"
    assert controller.asked == 1
    controller.told = {MODEL: 0, COMPILER: 2}
    clock.now += KEPT_S
    assert (await reader.read()).body()["status"] == "unavailable"
    assert controller.asked == 2


async def test_what_is_missing_is_told() -> None:
    async def is_down() -> bool:
        return False

    health = await HealthReader(Controller().running, {MODEL: 2, COMPILER: 2}, is_down).read()
    assert health.body() == {
        "status": "degraded",
        "degraded": [MODEL, "redis"],
        "replicas": {MODEL: 1, COMPILER: 2},
        "wanted": {MODEL: 2, COMPILER: 2},
        "redis": "down",
    }


async def test_a_head_that_does_not_answer_is_told_with_what_was_known_before() -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def running() -> dict[str, int]:
        if hangs.is_set():
            goes_on.wait(60)
        return {MODEL: 1}

    clock = Clock()
    reader = HealthReader(running, {MODEL: 1}, None, clock, patience_s=0.05)
    try:
        assert (await reader.read()).body()["status"] == "ready"
        hangs.set()
        clock.now += KEPT_S
        health = await reader.read()
        assert (health.ready, health.body()["status"], health.degraded) == (True, "degraded", ["ray"])
    finally:
        goes_on.set()


async def test_a_head_that_has_never_answered_leaves_a_service_unavailable() -> None:
    goes_on = threading.Event()
    reader = HealthReader(lambda: {MODEL: 1} if goes_on.wait(60) else {}, {MODEL: 1}, None, patience_s=0.05)
    try:
        assert (await reader.read()).body()["status"] == "unavailable"
    finally:
        goes_on.set()


async def test_a_service_without_replicas_is_unavailable_to_all_who_watch_it() -> None:
    door = Ingress().door  # behind which is none
    answers = [await door.get(path) for path in ("/readyz", "/health", "/ping")]
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(503, "unavailable")] * 3
    assert (await door.get("/healthz")).status_code == 200
