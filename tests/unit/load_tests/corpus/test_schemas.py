from __future__ import annotations

from pathlib import Path

import pytest

from grammar_service.inspection import inspect
from load_tests.corpus.cases import Case, read_cases
from load_tests.corpus.make_schemas import FOLDER, write

CASES = read_cases(FOLDER)


def test_the_folder_holds_what_the_script_writes(tmp_path: Path) -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in write(tmp_path)}
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert kept == written


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_every_schema_of_the_benchmark_is_served(case: Case) -> None:
    assert inspect(case.spec).served_by is not None


def test_both_backends_have_their_share() -> None:
    served = [inspect(case.spec).served_by for case in CASES]
    assert served.count("xgrammar") >= 20
    assert served.count("llguidance") >= 20
