"""Secrets by reference: settings that travel through Ray name the file that holds them, and who receives them reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, SecretStr, TypeAdapter

Tree = dict[str, Any]


def filled(tree: Mapping[str, Any], held: Mapping[str, Any]) -> Tree:
    """The settings of `tree`, and those of `held` that it does not have."""
    own = dict(tree)
    for name, value in held.items():
        if isinstance(value, Mapping) and isinstance(own.get(name), Mapping):
            own[name] = filled(own[name], value)
        else:
            own.setdefault(name, value)
    return own


def without(tree: Mapping[str, Any], held: Mapping[str, Any]) -> Tree:
    """The settings of `tree` but for those that `held` has too, with the same values: `filled` puts them back."""
    left: Tree = {}
    for name, value in tree.items():
        if isinstance(value, Mapping) and isinstance(held.get(name), Mapping):
            left[name] = without(value, held[name])
        elif name not in held or held[name] != value:
            left[name] = value
    return left


def plain(section: BaseModel, only_secrets: bool = False) -> Tree:
    """What was set of a section, as a file of settings has it; or the secrets alone."""
    tree: Tree = {}
    for name in section.model_fields_set:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            if below := plain(value, only_secrets):
                tree[name] = below
        elif not only_secrets or _is_secret(value):
            tree[name] = _shown(value)
    return tree


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """Both; where both have something, `over`."""
    return filled(over, under)


def public(section: BaseModel) -> Tree:
    """What was set of a section, as YAML can write it, without its secrets."""
    tree: Tree = {}
    for name in section.model_fields_set:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            if below := public(value):
                tree[name] = below
        elif not _is_secret(value):
            tree[name] = TypeAdapter(Any).dump_python(value, mode="json")
    return tree


def write(file: Path, tree: Tree) -> None:
    """For this user alone. Raises FileExistsError: never into what somebody else may have made there."""
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(yaml.safe_dump(tree), encoding="utf-8")


def _is_secret(value: object) -> bool:
    return isinstance(value, SecretStr) or (isinstance(value, tuple) and any(map(_is_secret, value)))


def _shown(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return [_shown(each) for each in value] if isinstance(value, tuple) else value
