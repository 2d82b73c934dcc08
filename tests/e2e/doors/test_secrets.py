"""No log, argument or environment of a running service tells a secret. One that has keys: `tests/e2e/faults/test_ingresses.py`."""

from __future__ import annotations

import pytest

from tests.e2e.service import MODEL, Service
from tests.e2e.told_secrets import Secrets, secrets_of, told_by_files, told_by_processes, told_by_ray

CLIENTS_OWN = "a-key-that-nobody-has-asked-for"


@pytest.fixture
def secrets(service: Service) -> Secrets:
    return secrets_of(service, clients=CLIENTS_OWN)


def test_no_argument_and_no_environment_of_a_process_tells_a_secret(secrets: Secrets) -> None:
    assert told_by_processes(secrets) == []


def test_no_log_tells_a_secret(service: Service, secrets: Secrets) -> None:
    bearer = {"Authorization": f"Bearer {CLIENTS_OWN}"}
    for body in ({"regex": "a"}, {"regex": "("}, {"grammar_id": "nobody"}):
        service.post("/v1/completions", {"model": MODEL, "prompt": "Say.", "max_tokens": 2, "structured_outputs": body}, headers=bearer)
    assert told_by_files(secrets) == []


def test_what_ray_is_told_to_start_tells_no_secret(secrets: Secrets) -> None:
    assert told_by_ray(secrets) == []
