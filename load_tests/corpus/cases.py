"""The grammars that a benchmark measures: the files of a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammar_service.errors import UnusableFile
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.spec_file import SUFFIXES, read_spec


@dataclass(frozen=True, slots=True)
class Case:
    """One grammar; `name` is its file's path below the folder."""

    name: str
    spec: GrammarSpec


def read_cases(folder: Path) -> list[Case]:
    """One case a file, folders below included, in order of their names; files whose suffix is no grammar's are passed over.

    A file of the official JSON Schema suite's form, an array of schemas with tests, is one case a schema, not closed.

    Raises:
        UnusableFile: there is no such folder, nothing in it, or a file that cannot be read.
    """
    if not folder.is_dir():
        raise UnusableFile(f"{folder} is not a folder")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in SUFFIXES)
    if not paths:
        raise UnusableFile(f"there is no grammar in {folder}: files end in {', '.join(sorted(SUFFIXES))}")
    return [case for path in paths for case in _cases_of(path, str(path.relative_to(folder)))]


def _cases_of(path: Path, name: str) -> list[Case]:
    spec = read_spec(path)
    schemas = _suite_schemas(spec)
    if not schemas:
        return [Case(name, spec)]
    specs = [GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), closed=False) for schema in schemas]
    return [Case(f"{name}#{index}", spec) for index, spec in enumerate(specs)]


def _suite_schemas(spec: GrammarSpec) -> list[Any]:
    """The schemas of a file of the suite's form, none for any other."""
    try:
        groups = json.loads(spec.text) if spec.kind is GrammarKind.JSON_SCHEMA else None
    except ValueError:
        return []
    if not isinstance(groups, list) or not all(isinstance(group, dict) and "schema" in group for group in groups):
        return []
    return [group["schema"] for group in groups]
