"""No log, argument or environment of a running service tells a secret that it uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.service import MODEL, Service

KEPT_IN = {"ray-token", "secrets.yaml", "redis.conf"}
CLIENTS_OWN = "a-key-that-nobody-has-asked-for"


@pytest.fixture
def secrets(service: Service) -> dict[str, str]:
    settings = service.cluster._settings
    assert settings.redis.password
    return {
        "Ray's token": Path(os.environ["RAY_AUTH_TOKEN_PATH"]).read_text(),
        "Redis's password": settings.redis.password.get_secret_value(),
        "artifact_secret": settings.artifact_secret.get_secret_value(),
        "a client's key": CLIENTS_OWN,
    }


def family() -> Iterator[psutil.Process]:
    yield from psutil.Process().children(recursive=True)


def written(folder: Path) -> Iterator[Path]:
    """Whatever the service has written on disk below its folder, but for the files that are there to keep secrets."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink() and file.name not in KEPT_IN:
            yield file


def test_no_argument_and_no_environment_of_a_process_tells_a_secret(service: Service, secrets: dict[str, str]) -> None:
    looked_at = 0
    for process in family():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            told = "\0".join([*process.cmdline(), *process.environ().values()])
            looked_at += 1
            assert not [name for name, secret in secrets.items() if secret in told], process
    assert looked_at > 10


def test_no_log_tells_a_secret(service: Service, secrets: dict[str, str]) -> None:
    bearer = {"Authorization": f"Bearer {CLIENTS_OWN}"}
    for body in ({"regex": "a"}, {"regex": "("}, {"grammar_id": "nobody"}):
        service.post("/v1/completions", {"model": MODEL, "prompt": "Say.", "max_tokens": 2, "structured_outputs": body}, headers=bearer)
    folder = Path(os.environ["RAY_AUTH_TOKEN_PATH"]).parent
    logs = {file for file in written(folder) if file.suffix in {".log", ".out", ".err"}}
    assert len(logs) > 10
    for file in {*logs, *written(folder)}:
        with suppress(FileNotFoundError):  # it may have been rotated
            content = file.read_bytes()
            assert not [name for name, secret in secrets.items() if secret.encode() in content], file


def test_what_ray_is_told_to_start_tells_no_secret(service: Service, secrets: dict[str, str]) -> None:
    """Ray's own store, where Ray Serve keeps what replicas are made of."""
    from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list

    keys = _internal_kv_list(b"", namespace="serve")
    values = [_internal_kv_get(key, namespace="serve") or b"" for key in keys]
    assert any(b"ModelReplica" in value for value in values)
    assert not [name for name, secret in secrets.items() for value in values if secret.encode() in value]
