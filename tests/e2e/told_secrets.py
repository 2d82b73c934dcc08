"""Where a running service could tell a secret that it uses: each function names those that it finds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from tests.e2e.service import Service

KEPT_IN = {"ray-token", "secrets.yaml", "redis.conf"}
Secrets = Mapping[str, str]


def secrets_of(service: Service, **others: str) -> Secrets:
    """By their names; `others` are clients' keys."""
    settings = service.cluster._settings
    assert settings.redis.password
    return {
        "Ray's token": Path(os.environ["RAY_AUTH_TOKEN_PATH"]).read_text(),
        "Redis's password": settings.redis.password.get_secret_value(),
        "artifact_secret": settings.artifact_secret.get_secret_value(),
        **others,
    }


def told_in(content: str | bytes, secrets: Secrets) -> list[str]:
    content = content if isinstance(content, bytes) else content.encode()
    return [name for name, secret in secrets.items() if secret.encode() in content]


def told_by_processes(secrets: Secrets) -> list[tuple[str, psutil.Process]]:
    """By their arguments and environments."""
    found, looked_at = [], 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            told = told_in("\0".join([*process.cmdline(), *process.environ().values()]), secrets)
            found += [(name, process) for name in told]
            looked_at += 1
    assert looked_at > 10
    return found


def told_by_files(secrets: Secrets) -> list[tuple[str, Path]]:
    """By whatever the service has written on disk below its folder, but for the files that are there to keep secrets."""
    folder = Path(os.environ["RAY_AUTH_TOKEN_PATH"]).parent
    files = list(_written(folder))
    assert len([file for file in files if file.suffix in {".log", ".out", ".err"}]) > 10
    found = []
    for file in files:
        with suppress(FileNotFoundError):  # it may have been rotated
            found += [(name, file) for name in told_in(file.read_bytes(), secrets)]
    return found


def told_by_ray(secrets: Secrets) -> list[str]:
    """By its own store, where Ray Serve keeps what replicas are made of."""
    from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list

    keys = _internal_kv_list(b"", namespace="serve")
    values = [_internal_kv_get(key, namespace="serve") or b"" for key in keys]
    assert any(b"ModelReplica" in value for value in values)
    return [name for value in values for name in told_in(value, secrets)]


def _written(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink() and file.name not in KEPT_IN:
            yield file
