"""Instances as people keep them: JSON, YAML or TOML files, read as the JSON values that they stand for."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Hashable
from pathlib import Path

import yaml

from grammar_service.errors import UnusableFile
from grammar_service.schema.json_text import Json

SUFFIXES = frozenset({".json", ".yaml", ".yml", ".toml"})


class _CoreLoader(yaml.SafeLoader):
    """YAML 1.2's core schema (chapter 10.3), where `on` is a string and a date too; PyYAML reads version 1.1."""


_CoreLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)


def _whole(loader: _CoreLoader, node: yaml.ScalarNode) -> int:
    text = node.value
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _real(loader: _CoreLoader, node: yaml.ScalarNode) -> float:
    return float(node.value)


_CoreLoader.add_constructor("tag:yaml.org,2002:int", _whole)
_CoreLoader.add_constructor("tag:yaml.org,2002:float", _real)


def read_instance(file: Path) -> Json:
    """The value of a file by its suffix, one of SUFFIXES.

    Raises:
        UnusableFile: it holds no such value.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix == ".toml":
            return _plain(tomllib.loads(text))
        # A loader of our own, which makes nothing but plain values.
        return json.loads(text) if file.suffix == ".json" else _plain(yaml.load(text, _CoreLoader))
    except (ValueError, OSError, RecursionError, yaml.YAMLError) as error:
        raise UnusableFile(f"{file} cannot be read: {error}") from None


def _plain(value: object) -> Json:
    """The value as JSON has it: names and dates as text."""
    if isinstance(value, dict):
        return {_name(name): _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _name(name: Hashable) -> str:
    return name if isinstance(name, str) else json.dumps(name) if isinstance(name, (bool, int, float, type(None))) else str(name)
