"""What vLLM's client is told, and what is made of what it says."""

from __future__ import annotations

import json
from itertools import product

from deployments.reporting.report import Row
from load_tests.front_door.figures import OURS, STOCK
from load_tests.front_door.vllm_client.__main__ import MORE, REQUESTS, SCHEMA, targets
from load_tests.front_door.vllm_client.client import Drive


def rows(faster: float) -> list[Row]:
    """Ours is so much faster in all that counts."""
    figures = {STOCK: (10.0, 100.0, 200.0), OURS: (10.0 * faster, 100.0 / faster, 200.0 / faster)}
    found: list[Row] = []
    for turn, (side, values), workload, clients in product(range(2), figures.items(), MORE, REQUESTS):
        cell = {"turn": turn, "side": side, "workload": workload, "clients": clients, "answers": "stream", "failed": 0}
        found.append({**cell, **dict(zip(("requests_per_s", "first_text_p99_ms", "latency_p50_ms"), values, strict=True))})
    return found


def test_each_promise_is_about_ours_by_stock() -> None:
    assert all(target.holds for target in targets(rows(2)))
    assert [target.value for target in targets(rows(2))] == [2, 0.5, 0.5] * len(MORE) + [0]
    assert sum(target.holds for target in targets(rows(0.5))) == 1


def test_what_was_not_answered_is_a_missed_promise() -> None:
    first, *others = rows(2)
    found = [{**first, "failed": 1}, *others]
    assert [target.holds for target in targets(found)][-1] is False


def test_a_constraint_goes_with_every_body() -> None:
    arguments = Drive(32, 320, MORE[SCHEMA]).arguments("http://127.0.0.1:1", "tiny", "results")
    told = dict(zip(arguments[:-2:2], arguments[1:-2:2], strict=True))
    assert json.loads(told["--extra-body"]) == MORE[SCHEMA]
    assert (told["--max-concurrency"], told["--num-prompts"]) == ("32", "320")
