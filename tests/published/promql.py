"""What queries of Prometheus name, as far as ours are written."""

from __future__ import annotations

import re

_NAME = re.compile(r"\b(?:maskcast|vllm|serve|ray)_\w+")
_MATCHERS = re.compile(r"(\w+)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_GROUPS = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")


def names(query: str) -> set[str]:
    """The samples that it asks for."""
    return set(_NAME.findall(_MATCHERS.sub(r"\1", query)))


def matched(query: str) -> list[tuple[str, str, set[str]]]:
    """The labels that it chooses by: of which sample, which label, which values or patterns."""
    return [
        (sample, label, set(values.split("|"))) for sample, inner in _MATCHERS.findall(query) for label, values in _MATCHER.findall(inner)
    ]


def grouped(query: str) -> set[str]:
    """The labels that it keeps."""
    return {label.strip() for inner in _GROUPS.findall(query) for label in inner.split(",") if label.strip()}
