from __future__ import annotations

import json
from collections import Counter

from load_tests.routing.traffic import HOT_SHARE, Body, hot, popular, schemas


def counts(bodies: list[Body]) -> list[int]:
    asked = Counter(json.dumps(body["response_format"]) for body in bodies)
    return sorted(asked.values(), reverse=True)


def test_there_are_64_schemas() -> None:
    assert len({json.dumps(schema) for schema in schemas()}) == 64


def test_the_same_requests_come_at_every_call_and_differ_among_themselves() -> None:
    bodies = popular(200)
    assert bodies == popular(200)
    assert len({body["messages"][0]["content"] for body in bodies}) > 150


def test_popularity_falls_by_zipfs_law() -> None:
    found = counts(popular(2000))
    assert len(found) > 60
    assert 0.2 < found[0] / 2000 < 0.33
    assert found[0] > 1.5 * found[1] > 2 * found[4]


def test_most_of_the_hot_requests_are_for_one_schema() -> None:
    found = counts(hot(500))
    assert HOT_SHARE - 0.05 < found[0] / 500 < HOT_SHARE + 0.1
    assert len(found) > 20
