"""The grammars that a benchmark measures: the files of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grammar_service.errors import UnusableFile
from grammar_service.spec import GrammarSpec
from grammar_service.spec_file import SUFFIXES, read_spec


@dataclass(frozen=True, slots=True)
class Case:
    """One grammar; `name` is its file's path below the folder."""

    name: str
    spec: GrammarSpec


def read_cases(folder: Path) -> list[Case]:
    """One case a file, folders below included, in order of their names; files whose suffix is no grammar's are passed over.

    Raises:
        UnusableFile: there is no such folder, nothing in it, or a file that cannot be read.
    """
    if not folder.is_dir():
        raise UnusableFile(f"{folder} is not a folder")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in SUFFIXES)
    if not paths:
        raise UnusableFile(f"there is no grammar in {folder}: files end in {', '.join(sorted(SUFFIXES))}")
    return [Case(str(path.relative_to(folder)), read_spec(path)) for path in paths]
