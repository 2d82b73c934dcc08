"""The page of the settings lists every one, with its default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from deployments.config import Settings
from tests.published.documents import code_spans, pages, rows


def settings(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in section.model_fields.items():
        of = field.annotation
        if isinstance(of, type) and issubclass(of, BaseModel):
            yield from settings(of, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def shown(value: Any) -> str:
    """A default as the page writes it."""
    if value in (None, (), {}, SecretStr("")):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


PAGE = "docs/guide/settings.md"
DECLARED = dict(settings(Settings))
LISTED = {code_spans(cells[0])[0]: cells for cells in rows(pages(PAGE)[PAGE]) if code_spans(cells[0])}


def test_every_setting_is_listed_and_nothing_else() -> None:
    assert set(LISTED) == set(DECLARED)


@pytest.mark.parametrize("name", DECLARED)
def test_its_default_is_the_one_in_the_code(name: str) -> None:
    assert LISTED[name][1] == shown(DECLARED[name].get_default(call_default_factory=True, validated_data={}))


@pytest.mark.parametrize("name", [name for name, field in DECLARED.items() if get_origin(field.annotation) is Literal])
def test_every_choice_is_named(name: str) -> None:
    choices = {shown(choice).strip("`") for choice in get_args(DECLARED[name].annotation)}
    assert choices <= {*code_spans(LISTED[name][1]), *code_spans(LISTED[name][2])}
