"""Reading folders of schemas with instances that are valid or not."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from grammar_service.errors import UnusableFile
from grammar_service.schema.json_text import Json

DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
"""The folders of the official suite with the `$schema` that their schemas are of, whether they say so or not."""


@dataclass(frozen=True, slots=True)
class Case:
    """One instance, and whether its schema allows it."""

    description: str
    instance: Json
    valid: bool


@dataclass(frozen=True, slots=True)
class Group:
    """One schema with its cases, which may be none; `keyword` is the name of the file that it comes from."""

    keyword: str
    description: str
    schema: Json
    cases: tuple[Case, ...]


def read_suite(folder: Path, draft: str | None = None) -> list[Group]:
    """The groups of all `*.json` files of a folder, or, where it has none, of the folders below it.

    A file holds a list of `{"description", "schema", "tests": [{"description", "data", "valid"}]}`, as the official suite does; one
    such object; or a schema alone. With a `draft`, one of DRAFTS, the folder of that name is read where there is one, and schemas
    that name no dialect are of this one.

    Raises:
        UnusableFile: there is no such folder or draft, no file in it, or a file that is not JSON.
    """
    if draft is not None and draft not in DRAFTS:
        raise UnusableFile(f"there is no {draft}; the drafts are {', '.join(DRAFTS)}")
    if draft is not None and (folder / draft).is_dir():
        folder /= draft
    files = sorted(folder.glob("*.json")) or sorted(folder.rglob("*.json"))
    if not files:
        raise UnusableFile(f"there are no *.json files in {folder}")
    groups = [group for file in files for group in _groups(file)]
    return groups if draft is None else [replace(group, schema=_of_dialect(group.schema, DRAFTS[draft])) for group in groups]


def _of_dialect(schema: Json, dialect: str) -> Json:
    return {"$schema": dialect, **schema} if isinstance(schema, dict) else schema


def _groups(file: Path) -> list[Group]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise UnusableFile(f"{file} cannot be read: {error}") from None
    listed = content if isinstance(content, list) else [content]
    return [_group(file.stem, item) for item in listed]


def _group(keyword: str, item: Json) -> Group:
    if not (isinstance(item, dict) and "schema" in item and isinstance(tests := item.get("tests", []), list)):
        return Group(keyword, keyword, item, ())
    cases = tuple(_case(test) for test in tests if isinstance(test, dict) and "data" in test)
    return Group(keyword, str(item.get("description", keyword)), item["schema"], cases)


def _case(test: dict[str, Json]) -> Case:
    return Case(str(test.get("description", "")), test["data"], test.get("valid") is True)
