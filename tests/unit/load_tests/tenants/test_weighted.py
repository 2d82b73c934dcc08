"""Shares of floods with weights."""

from __future__ import annotations

import pytest

from load_tests.front_door.clients.messages import PiecesCame
from load_tests.tenants.weighted import WEIGHTS, rows


def came(characters: int, failed: int = 0) -> PiecesCame:
    return PiecesCame(characters, characters, failed, None)


def test_a_share_is_told_by_what_is_due() -> None:
    found = rows("x", {"one": came(100), "two": came(300, 2), "four": came(300)})
    assert [row["tenant"] for row in found] == list(WEIGHTS)
    assert [row["share_by_due"] for row in found] == pytest.approx([1.0, 1.5, 0.75], abs=1e-3)
    assert [row["failed"] for row in found] == [0, 2, 0]


def test_where_nothing_came_there_is_no_share() -> None:
    assert [row["share_by_due"] for row in rows("x", dict.fromkeys(WEIGHTS, came(0)))] == [None] * 3
