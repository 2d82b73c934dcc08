from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from deployments.playground.files import BUILT, playground_routes

MOST_BYTES = 400 << 10
"""Of all files, as a browser gets them."""


@pytest.fixture(scope="module")
def browser() -> TestClient:
    return TestClient(Starlette(routes=playground_routes()))


def test_the_page_is_there_with_all_that_it_names(browser: TestClient) -> None:
    page = browser.get("/")
    assert page.headers["content-type"].startswith("text/html")
    named = re.findall(r'(?:src|href)="\./([^"]+)"', page.text)
    assert len(named) == 2
    for path in named:
        assert browser.get(f"/{path}").status_code == 200


def test_nothing_but_the_services_own_scripts_and_styles_runs(browser: TestClient) -> None:
    page = browser.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", page.text)
    assert "https://" not in page.text


def test_a_browser_that_has_it_gets_nothing(browser: TestClient) -> None:
    etag = browser.get("/").headers["etag"]
    again = browser.get("/", headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert browser.get("/", headers={"if-none-match": '"another"'}).status_code == 200


def test_files_are_packed_for_those_who_can_unpack_them(browser: TestClient) -> None:
    plain = browser.get("/assets/index.js", headers={"accept-encoding": "identity"})
    packed = browser.get("/assets/index.js", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content == (BUILT / "assets" / "index.js").read_bytes()


def test_the_page_is_small() -> None:
    assert sum(len(gzip.compress(path.read_bytes())) for path in BUILT.rglob("*") if path.is_file()) < MOST_BYTES


def test_other_folders_have_pages_too(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>hello", encoding="utf-8")
    assert TestClient(Starlette(routes=playground_routes(tmp_path))).get("/").text == "<p>hello"
