"""The trees that the `errors.py` of each package draws are the trees that there are."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("deployments", "grammar_service", "load_tests", "model_service")
_DRAWN = re.compile(r"^(?P<branch>[│├└─ ]*)(?P<name>\w+)")


@cache
def exceptions(package: str) -> dict[str, str]:
    """Each exception class that is defined in the package, and its base."""
    found = {cls.name: ast.unparse(cls.bases[0]) for cls in classes(package) if cls.bases}
    roots = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)}
    roots |= set() if package == "grammar_service" else set(exceptions("grammar_service"))
    while more := {name for name, base in found.items() if base in roots} - roots:
        roots |= more
    return {name: base for name, base in found.items() if name in roots}


def classes(package: str) -> Iterator[ast.ClassDef]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield from (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ClassDef))


def drawn(package: str) -> dict[str, str]:
    """Each class in the drawing, and what it hangs on."""
    text = ast.get_docstring(ast.parse((ROOT / package / "errors.py").read_text(encoding="utf-8"))) or ""
    above: list[tuple[int, str]] = []
    tree: dict[str, str] = {}
    for line in text.split("\n\n")[-1].splitlines():
        found = _DRAWN.match(line)
        assert found is not None, line
        depth, name = len(found["branch"]), found["name"]
        above = [(level, parent) for level, parent in above if level < depth]
        tree[name] = above[-1][1] if above else ""
        above.append((depth, name))
    return tree


@pytest.mark.parametrize("package", PACKAGES)
def test_the_drawn_tree_is_the_one_that_there_is(package: str) -> None:
    tree = drawn(package)
    root = next(iter(tree))
    assert {name: parent for name, parent in tree.items() if name != root} == {
        name: base for name, base in exceptions(package).items() if name != root
    }
    assert root in exceptions("grammar_service") or exceptions(package)[root] in exceptions("grammar_service")


def test_the_router_has_no_errors_of_its_own() -> None:
    assert exceptions("router") == {}
