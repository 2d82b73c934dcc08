"""A service whose tenants have keys, weights and limits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import yaml

from deployments.access.key_file import digest_of, new_key
from load_tests.reporting.running_service import running_service

SEATS = 64
"""As a service has without settings: an eighth of them are for as many light clients as there are."""
HOST = "127.0.0.1"
Tenants = Mapping[str, Mapping[str, Any]]
"""By their names what the key file says of them: `weight`, `limits`."""


@contextmanager
def service(tenants: Tenants, ingresses: int = 1) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Its port, and the keys of its tenants by their names."""
    keys = {name: new_key() for name in tenants}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump([{"name": name, "sha256": digest_of(key), **tenants[name]} for name, key in keys.items()], file)
        file.flush()
        settings = {"model": {"max_num_seqs": SEATS}, "http": {"api_keys_file": file.name, "num_replicas": ingresses}}
        with running_service(settings) as url:
            yield httpx.URL(url).port or 80, keys
