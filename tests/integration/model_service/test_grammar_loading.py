"""Grammars are loaded in turns, each tenant's in its own, and not for requests that have ended."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from model_service.engine.core.grammar_loading import GrammarLoader
from model_service.messages import TENANT_ARGUMENT


def request_of(tenant: str, finished: bool = False) -> Any:
    params = SimpleNamespace(extra_args={TENANT_ARGUMENT: tenant} if tenant else None)
    return SimpleNamespace(sampling_params=params, is_finished=lambda: finished)


def test_a_flood_of_grammars_lets_a_neighbours_pass() -> None:
    loader, order, go = GrammarLoader(1), list[object](), threading.Event()

    def make(request: Any) -> int:
        go.wait(30)
        order.append(request)
        return len(order)

    flood = [loader.submit(make, request_of("flood")) for _ in range(5)]
    ended = loader.submit(make, request_of("flood", finished=True))
    others = [loader.submit(make, request_of(tenant)) for tenant in ("neighbour", "")]
    go.set()
    places = [future.result(30) for future in (*flood, *others)]
    assert sorted(places) == [1, 2, 3, 4, 5, 6, 7]
    assert max(places[5:]) <= 4, "after one of the flood's that is under way, and another one"
    loader.shutdown()
    assert ended.cancelled()


class Panic(BaseException):
    """As the libraries in Rust raise it."""


@pytest.mark.parametrize("error", [ValueError("no"), Panic("no")])
def test_a_fault_is_told_to_whoever_waits(error: BaseException) -> None:
    loader = GrammarLoader(1)

    def make(request: Any) -> None:
        raise error

    told = loader.submit(make, request_of("one")).exception(30)
    assert isinstance(told, Exception)
    assert str(told).endswith("no")
    loader.shutdown()
