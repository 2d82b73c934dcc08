"""What a soak asks: as many schemas as it says, each again and again, and what a public port sees beside it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from grammar_service.backends.selection import select_backend
from grammar_service.spec import GrammarKind, GrammarSpec
from load_tests.front_door.clients.connection import Reply
from load_tests.front_door.clients.events import Part
from load_tests.soak.driving import ANSWERED, FAILED, LOST, REFUSED, outcome
from load_tests.soak.roles import OTHER, role
from load_tests.soak.schemas import schema
from load_tests.soak.traffic import Kind, traffic

ERROR = b'data: {"error": {"code": "engine_dead"}}\n\n'
DONE = b"data: [DONE]\n\n"


def test_no_two_schemas_are_alike_and_each_is_the_same_at_every_call() -> None:
    texts = [json.dumps(schema(number)) for number in range(2000)]
    assert len(set(texts)) == 2000
    assert texts[7] == json.dumps(schema(7))


def test_each_can_be_served() -> None:
    for number in range(60):
        assert select_backend(GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema(number))))


def test_each_schema_comes_once_in_each_round() -> None:
    asked = [each.body.get("structured_outputs", {}).get("json") for each in traffic(400, 100)]
    times = Counter(json.dumps(each) for each in asked if each is not None and "$ref" not in json.dumps(each))
    assert len(times) == 100
    assert max(times.values()) <= 4  # a few are refused or unconstrained in their place
    assert min(times.values()) >= 2


def test_there_is_something_of_everything() -> None:
    kinds = Counter(each.kind for each in traffic(1000, 100))
    assert set(kinds) == set(Kind)
    assert kinds[Kind.WHOLE] > 400
    assert kinds[Kind.LEFT] > 50
    assert kinds[Kind.REFUSED] == 40
    assert sum("structured_outputs" not in each.body for each in traffic(1000, 100)) > 10


@pytest.mark.parametrize(
    ("kind", "status", "body", "wanted"),
    [
        (Kind.WHOLE, 200, b"{}", ANSWERED),
        (Kind.WHOLE, 503, b"{}", FAILED),
        (Kind.WHOLE, 400, b"{}", LOST),
        (Kind.WHOLE, 0, b"", LOST),
        (Kind.STREAM, 200, DONE, ANSWERED),
        (Kind.STREAM, 200, b"", LOST),
        (Kind.STREAM, 200, ERROR + DONE, FAILED),
        (Kind.REFUSED, 400, b"{}", REFUSED),
        (Kind.REFUSED, 200, b"{}", LOST),
    ],
)
def test_nothing_lost_is_called_by_another_name(kind: Kind, status: int, body: bytes, wanted: str) -> None:
    assert outcome(kind, Reply(status, [Part(0.0, body)])) == wanted


@pytest.mark.parametrize(
    ("command", "above", "wanted"),
    [
        ("ray::ServeReplica:maskcast:ModelReplica", "raylet", "ModelReplica"),
        ("VLLM::EngineCore", "ModelReplica", "engine core"),
        ("ray::SERVE_REPLICA::maskcast#Ingress#8jx:ServeReplica:maskcast:Ingress.start", "raylet", "Ingress"),
        ("ray::DashboardAgent", "raylet", "Ray's agents"),
        ("ray::BroadcasterActor", "raylet", "BroadcasterActor"),
        ("ray::IDLE", "raylet", "idle worker"),
        ("python -m grammar_service.sandbox.zygote 7", "GrammarCompiler", "compile zygote"),
        ("python -m grammar_service.sandbox.zygote 7", "compile zygote", "compile child"),
        ("python -c from multiprocessing.resource_tracker import main", "ModelReplica", "ModelReplica"),
        ("/usr/bin/redis-server 127.0.0.1:4000", "", "Redis"),
        ("sleep 5", "", OTHER),
    ],
)
def test_processes_are_told_apart(command: str, above: str, wanted: str) -> None:
    assert role(command, above) == wanted
