"""The page at /, in Chromium, against the service; and whether what is built of it is that of its source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import Service

ROOT = Path(__file__).parents[2]
WEB = ROOT / "deployments/page/web"
is_set_up = pytest.mark.skipif(
    not (WEB / "node_modules").is_dir() or not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    reason="`scripts/page --setup` has not set up Node packages and Chromium",
)


@is_set_up
def test_the_page_does_what_it_offers(service: Service) -> None:
    run = subprocess.run([ROOT / "scripts/page", service.url + "/"], capture_output=True, text=True, check=False, timeout=500)
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr


@is_set_up
def test_what_is_built_is_that_of_the_source() -> None:
    run = subprocess.run([ROOT / "scripts/page", "--check"], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_page_is_at_the_root_and_its_rules_are_with_it(service: Service) -> None:
    page = httpx.get(service.url + "/", trust_env=False)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["content-security-policy"]
