"""The project's documents as tests read them: their pages, the examples in them, and what stands in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_EXAMPLE = re.compile(r"<!-- test: (\w+) -->\n```\w+\n(.*?)```", re.DOTALL)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


def pages(*patterns: str) -> dict[str, str]:
    """The documents that match, by their path from the root."""
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def all_pages() -> dict[str, str]:
    return pages("*.md", "docs/**/*.md")


def examples(documents: Mapping[str, str]) -> dict[str, str]:
    """The code blocks behind `<!-- test: NAME -->`, by name. Raises ValueError: a name stands twice."""
    found = [example for text in documents.values() for example in _EXAMPLE.findall(text)]
    names = [name for name, _ in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"more than one example is called {', '.join(sorted(twice))}")
    return dict(found)


def blocks(text: str, language: str) -> list[str]:
    """The fenced code blocks in a language."""
    return [block for of, block in _FENCE.findall(text) if of == language]


def code_spans(text: str) -> list[str]:
    """What stands in single backticks outside of code blocks."""
    return _CODE.findall(_FENCE.sub("", text))


def rows(text: str) -> Iterator[list[str]]:
    """The cells of all table rows, headings included."""
    for line in _FENCE.sub("", text).splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]
