from __future__ import annotations

import logging

import pytest

from router.rare_log import PERIOD_S, RareLog


def test_errors_are_logged_once_a_minute_and_counted_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    rare = RareLog(logging.getLogger("rare"), lambda: now[0])
    for _ in range(3):
        rare.error("it failed", ValueError("why"))
    now[0] += PERIOD_S
    rare.error("it failed", ValueError("why"))
    assert [record.message for record in caplog.records] == ["it failed", "it failed (2 more errors since the last one that was logged)"]
    assert all(record.exc_info for record in caplog.records)
