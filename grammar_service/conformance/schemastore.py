"""A checkout of SchemaStore (github.com/SchemaStore/schemastore): schemas that people use, with instances.

`src/schemas/json/NAME.json` is a schema, `src/test/NAME/` has its valid instances and `src/negative_test/NAME/` the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from grammar_service.conformance.instances import SUFFIXES, read_instance
from grammar_service.conformance.suite import Case
from grammar_service.errors import GrammarError, UnusableFile
from grammar_service.limits import Limits, check_limits
from grammar_service.schema.json_text import Json
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec

SCHEMAS = Path("src/schemas/json")
_VALID, _INVALID = Path("src/test"), Path("src/negative_test")


class Apart(StrEnum):
    """Why a schema is not asked for: the service fetches nothing, and bounds what it reads."""

    REMOTE = "refers to another document"
    LIMITS = "over the limits of a constraint"
    BROKEN = "not JSON"


@dataclass(frozen=True, slots=True)
class Collected:
    """One schema with its instances; `unread` counts files that hold no JSON value."""

    name: str
    schema: Json
    cases: tuple[Case, ...]
    apart: Apart | None
    unread: int = 0


def is_schemastore(folder: Path) -> bool:
    return (folder / SCHEMAS).is_dir() and (folder / _VALID).is_dir()


def read_schemastore(folder: Path) -> Iterator[Collected]:
    """The schemas in the order of their names, each read when it is asked for."""
    for file in schema_files(folder):
        yield read_schema(folder, file.stem)


def schema_files(folder: Path) -> list[Path]:
    return sorted((folder / SCHEMAS).glob("*.json"))


def read_schema(folder: Path, name: str) -> Collected:
    """The schema of a name, with its instances."""
    file = folder / SCHEMAS / f"{name}.json"
    try:
        schema = read_instance(file)
    except UnusableFile:
        return Collected(name, None, (), Apart.BROKEN)
    if (apart := _apart(schema)) is not None:
        return Collected(name, None, (), apart)
    cases: list[Case] = []
    unread = 0
    for folders, valid in ((_VALID, True), (_INVALID, False)):
        for instance in sorted((folder / folders / name).rglob("*")):
            if instance.suffix in SUFFIXES:
                try:
                    cases.append(Case(str(instance.relative_to(folder / "src")), read_instance(instance), valid))
                except UnusableFile:
                    unread += 1
    return Collected(name, schema, tuple(cases), None, unread)


def _apart(schema: Json) -> Apart | None:
    if _is_remote(schema):
        return Apart.REMOTE
    try:
        check_limits(GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema, ensure_ascii=False), STANDARD, closed=False), Limits())
    except GrammarError:
        return Apart.LIMITS
    return None


def _is_remote(document: Json) -> bool:
    """Whether some `$ref` names a resource that the document does not hold, whatever keyword it stands below."""
    known: set[str] = set()
    wanted: set[str] = set()
    waiting: list[tuple[Json, str]] = [(document, "")]
    while waiting:
        value, base = waiting.pop()
        if isinstance(value, dict):
            named = value.get("$id", value.get("id"))
            if isinstance(named, str):
                base = urljoin(base, urldefrag(named)[0])
                known.add(base)
            reference = value.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                wanted.add(urldefrag(urljoin(base, reference))[0])
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting.extend((member, base) for member in inner)
    return not wanted <= known
