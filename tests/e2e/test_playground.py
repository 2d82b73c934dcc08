"""The playground in Chromium, against the service; and whether its built files match their source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import Service

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "playground"
needs_browser = pytest.mark.skipif(
    not (SOURCE / "node_modules").is_dir() or not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    reason="`make playground` has not set up Node packages and Chromium",
)


@needs_browser
def test_the_playground_works_in_a_browser(service: Service) -> None:
    run = subprocess.run([ROOT / "scripts/playground", service.url + "/"], capture_output=True, text=True, check=False, timeout=500)
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr


@needs_browser
def test_the_built_files_match_their_source() -> None:
    run = subprocess.run([ROOT / "scripts/playground", "--check"], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_playground_is_served_at_the_root_with_its_policy(service: Service) -> None:
    page = httpx.get(service.url + "/", trust_env=False)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["content-security-policy"]
