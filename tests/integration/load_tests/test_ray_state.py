"""A Redis that has no file comes back with what it held."""

from __future__ import annotations

import redis

from deployments.local.redis_server import HOST, RedisServer
from load_tests.faults.ray_state import kill, start_again


def test_what_was_held_is_there_again_after_the_server_was_away() -> None:
    with RedisServer() as state, redis.Redis(HOST, state.port, password=state.password.get_secret_value()) as client:
        client.hset("nodes", mapping={"first": b"\x00\xff"})
        client.set("session", "one")
        held = kill(state)
        assert not state.running
        start_again(state, held)
        assert client.hgetall("nodes") == {b"first": b"\x00\xff"}
        assert client.get("session") == b"one"
