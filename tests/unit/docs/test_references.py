"""Everything in the documents that names something of the project names something that is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from deployments.commands.cli import app
from tests.published.documents import ROOT, all_pages, blocks, code_spans, pages, rows

ROOMS = (
    *("deployments", "grammar_service", "model_service", "router", "load_tests", "tests"),
    *("docs", "examples", "k8s", "scripts", ".ci"),
)
FILE = re.compile(r"[\w.\-]+\.(py|md|toml|lock)")
TEST = re.compile(r"([\w.\-/]+\.py)::(\w+)")
ANYWHERE = ("__init__.py", "library.py")
"""Names of files that stand in more than one folder."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PAGES = all_pages()
LIMITS = {"README.md": 8192, "ARCHITECTURE.md": 6000}
"""In bytes: what does not fit has a page of its own."""


def paths(text: str) -> Iterator[str]:
    """What looks like a file or folder, from the root."""
    for span in code_spans(text):
        if " " in span or span.startswith("/") or TEST.fullmatch(span):
            continue
        if span.split("/")[0] in ROOMS if "/" in span else FILE.fullmatch(span):
            yield span


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("docs/benchmarks/") and page != "CHANGELOG.md"])
def test_every_path_is_there(page: str) -> None:
    assert not [path for path in paths(PAGES[page]) if path not in ANYWHERE and not any(ROOT.glob(path.rstrip("/")))]


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_is_named_is_there(page: str) -> None:
    for span in code_spans(PAGES[page]):
        if named := TEST.fullmatch(span):
            assert any(named[2] in functions(path) for path in ROOT.glob(f"tests/**/{named[1]}")), span


def functions(path: Path) -> set[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_feature_beside_a_gpu_is_shown_by_a_test() -> None:
    chapter = PAGES["docs/guide/gpu.md"].partition("## What an engine can do beside")[2].partition("\n## ")[0]
    shown = {feature: code_spans(by) for feature, _, by in list(rows(chapter))[2:]}
    assert len(shown) > 15
    assert not [feature for feature, spans in shown.items() if not spans or not all(map(TEST.fullmatch, spans))]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in LINK.findall(PAGES[page]):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(page.read_text(encoding="utf-8"))}


def commands() -> set[str]:
    """Everything that `maskcast` can be told to do, groups of commands included."""
    found: set[str] = set()

    def walk(group: typer.Typer, prefix: str) -> None:
        for command in group.registered_commands:
            name = command.name or getattr(command.callback, "__name__", "")
            found.add(f"{prefix} {name}")
        for below in group.registered_groups:
            assert below.typer_instance is not None
            found.add(f"{prefix} {below.name}")
            walk(below.typer_instance, f"{prefix} {below.name}")

    walk(app, "maskcast")
    return found


def typed(text: str) -> list[str]:
    """Commands in backticks and in shell blocks."""
    return [*code_spans(text), *(line for block in blocks(text, "bash") for line in block.splitlines())]


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md" and not page.startswith("docs/benchmarks/history/")])
def test_every_command_can_be_typed(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    known = commands()
    for command in typed(PAGES[page]):
        words = command.split()
        match words:
            case ["make", target, *_]:
                assert target in targets, command
            case ["maskcast", "grammar", name, *_]:
                assert f"maskcast grammar {name}" in known, command
            case ["maskcast", name, *_]:
                assert f"maskcast {name}" in known, command
            case ["python", "-m", module, *_]:
                place = ROOT / module.replace(".", "/")
                assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), command


def test_every_command_of_ours_is_in_the_guide() -> None:
    guide = PAGES["docs/guide/commands.md"]
    for command in commands() - {"maskcast grammar"}:
        assert f"`{command}" in guide


def test_codes_of_errors_are_named_as_in_the_code() -> None:
    code = "\n".join(pages("deployments/**/*.py", "grammar_service/errors.py", "model_service/replies.py").values())
    for name in listed_codes():
        assert f'"{name}"' in code, name


def listed_codes() -> Iterator[str]:
    for cells in rows(PAGES["docs/guide/operations.md"]):
        if len(cells) > 1 and cells[0].isdigit():
            yield from (span for span in code_spans(cells[1]) if re.fullmatch(r"[a-z_]+", span))


@pytest.mark.parametrize("page", LIMITS)
def test_the_first_pages_are_short(page: str) -> None:
    assert len(PAGES[page].encode()) <= LIMITS[page]
