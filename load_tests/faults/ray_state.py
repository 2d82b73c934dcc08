"""Ray's own Redis, which is started again with what it wrote: its server here has no file, a pod's has one on a volume."""

from __future__ import annotations

from collections.abc import Mapping

import psutil
import redis

from deployments.local.redis_server import HOST, RedisServer


def kill(state: RedisServer) -> Mapping[bytes, bytes]:
    """Returns what it held."""
    with _client(state) as client:
        held = {key: client.dump(key) for key in client.scan_iter()}
    psutil.Process(state.pid).kill()
    state.stop()
    return {key: value for key, value in held.items() if value is not None}


def start_again(state: RedisServer, held: Mapping[bytes, bytes]) -> None:
    state.start()
    with _client(state) as client:
        for key, value in held.items():
            client.restore(key, 0, value, replace=True)


def _client(state: RedisServer) -> redis.Redis:
    return redis.Redis(HOST, state.port, password=state.password.get_secret_value())
