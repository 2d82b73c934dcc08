"""The scenarios of `make load`, for a second each."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from load_tests.load.driving import Port, drive
from load_tests.load.scenarios import SCENARIOS, Scenario
from tests.e2e.service import Service

RATE = 4.0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_whatever_is_asked_is_answered_or_refused(service: Service, scenario: Scenario) -> None:
    service.wait_until_ready()
    url = httpx.URL(service.url)
    asked = asyncio.run(drive(Port(url.host, url.port or 80, {"nobody": ""}), scenario, RATE, 1.0, lambda: None))
    assert asked
    assert {each.status for each in asked} <= ({200, 400} if scenario.name == "hostile schemas" else {200}), asked
    for each in asked:
        assert each.is_answered == (each.status == 200)
        assert (each.first_s is not None) == each.is_answered
