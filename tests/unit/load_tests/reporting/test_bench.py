from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from load_tests.reporting.bench import RESULTS, staleness
from load_tests.reporting.benchmarks import BENCHMARKS
from load_tests.reporting.tables import ROOT


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", "-C", str(folder), *named, *words], check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, file: str) -> str:
    (folder / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("a") as written:
        written.write("more\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", file)
    return git(folder, "rev-parse", "--short=12", "HEAD")


def test_a_result_is_out_of_date_when_what_it_measures_has_changed(repository: Path) -> None:
    first = commit(repository, "router/pick.py")
    assert not staleness(repository, first, ["router"])
    commit(repository, "docs/guide.md")
    assert not staleness(repository, first, ["router"])
    second = commit(repository, "router/pick.py")
    assert staleness(repository, first, ["router"]) == f"commits since {first} that changed what it measures: 1"
    assert not staleness(repository, second, ["router"])


def test_so_is_one_that_is_not_there_or_of_an_unknown_commit(repository: Path) -> None:
    commit(repository, "router/pick.py")
    assert staleness(repository, "", ["router"]) == "never measured"
    assert staleness(repository, "0123456789ab-dirty", ["router"]) == "measured with changes that were not committed"
    assert staleness(repository, "0123456789ab", ["router"]) == "commit 0123456789ab is not in this repository"


def test_every_result_is_a_benchmarks_and_every_path_is_there() -> None:
    assert {path.stem for path in RESULTS.glob("*.json")} <= {*BENCHMARKS}
    paths = {path.removeprefix(":(exclude)") for benchmark in BENCHMARKS.values() for path in benchmark.measured_paths}
    assert [path for path in paths if not (ROOT / path).exists()] == []
