"""The shared cache over TLS: who is not vouched for by the right authority gets nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.local.ports import free_port
from grammar_service.artifacts.cache import RedisCache
from tests.integration.grammar_service.redis_process import HOST, PASSWORD, RedisProcess

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for this machine that vouches for itself, and its key."""
    file, key = folder / f"{name}.pem", folder / f"{name}.key"
    made_of = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    named = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *made_of, *named, "-keyout", str(key), "-out", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    return file, key


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a Redis that listens for TLS, and its certificate."""
    file, key = certificate(tmp_path, "server")
    port = free_port(HOST)
    files = ["--tls-cert-file", str(file), "--tls-key-file", str(key), "--tls-ca-cert-file", str(file)]
    process = RedisProcess(tmp_path, "--tls-port", str(port), "--tls-auth-clients", "no", *files)
    yield f"rediss://127.0.0.1:{port}/0", file
    process.kill()


def cache_of(url: str, ca_file: Path | None) -> RedisCache:
    return RedisCache(url, PASSWORD, "test", 5000, 60, 1000, ca_file=str(ca_file) if ca_file else None)


async def test_a_value_comes_and_goes_over_tls(server: tuple[str, Path]) -> None:
    cache = cache_of(*server)
    await cache.put("k", b"value")
    assert await cache.get("k") == b"value"
    await cache.close()


@pytest.mark.parametrize("trusts", ["another", "none"])
async def test_a_server_that_nobody_vouches_for_is_given_nothing(server: tuple[str, Path], tmp_path: Path, trusts: str) -> None:
    url, _ = server
    cache = cache_of(url, certificate(tmp_path, "other")[0] if trusts == "another" else None)
    await cache.put("k", b"value")
    assert await cache.get("k") is None
    assert (cache.counters.puts, cache.counters.errors) == (0, 2)
    await cache.close()
