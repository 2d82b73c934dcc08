"""Clients that others have written, for Python and Node, against the service: `tests/clients`, which has an environment of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.service import MODEL, Service

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / "tests/clients/.venv/.lock-digest").is_file(), reason="`make clients` has not set up their environment")
def test_what_they_send_is_answered_as_they_want_it(service: Service) -> None:
    run = subprocess.run([ROOT / "scripts/clients", service.url, MODEL], capture_output=True, text=True, check=False, timeout=500)
    assert run.returncode == 0, run.stdout + run.stderr
