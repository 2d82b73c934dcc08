"""Every place of vLLM that Maskcast overrides or calls inside is still as it was when our side was written.

`vllm.toml` names them by our file: what they take, and a digest of their source. vLLM is read here, not imported, so that its builds for
GPUs and for CPUs are judged alike: their files are the same but for three, which are not in the table. It is the installed one, or the one
whose folder `VLLM_SOURCE` names: an unpacked wheel.
"""

from __future__ import annotations

import ast
import os
import tomllib
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "model_service" / "engine"
TABLE = tomllib.loads((Path(__file__).parent / "vllm.toml").read_text(encoding="utf-8"))
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def package() -> Path:
    if unpacked := os.environ.get("VLLM_SOURCE"):
        return Path(unpacked) / "vllm"
    spec = find_spec("vllm")
    assert spec is not None, "vLLM is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent


@cache
def definitions(file: str) -> dict[str, str]:
    """What stands behind each class, function and method of a file of vLLM: what it takes, and a digest of its source, decorators too."""
    text = (package() / file).read_text(encoding="utf-8")
    return dict(_described(ast.parse(text), text.splitlines(), ""))


def _described(parent: ast.AST, lines: list[str], prefix: str) -> Iterator[tuple[str, str]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, DEFINITIONS):
            first = min(one.lineno for one in (node, *node.decorator_list))
            source = "\n".join(lines[first - 1 : node.end_lineno])
            digest = sha256(source.encode()).hexdigest()[:16]
            yield prefix + node.name, f"{_taken(node)} {digest}".strip()
            yield from _described(node, lines, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            yield from _described(node, lines, prefix)


def _taken(node: ast.AST) -> str:
    if isinstance(node, ast.ClassDef):
        return ""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    given = node.args
    named = [*given.posonlyargs, *given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs]
    return f"({', '.join(each.arg for each in [*named, *([given.kwarg] if given.kwarg else [])])})"


def found(seam: str) -> str:
    """As the table has it, of `v1/request.py:Request.append_output_token_ids`."""
    file, name = seam.split(":")
    return definitions(file).get(name, "is gone") if (package() / file).exists() else "its file is gone"


@pytest.mark.parametrize("ours", [name for name in TABLE if name.endswith(".py")])
def test_nothing_of_vllm_has_changed_under(ours: str) -> None:
    assert (ROOT / ours).exists()
    changed = {seam: now for seam, known in TABLE[ours].items() if (now := found(seam)) != known}
    lines = "\n".join(f'"{seam}" = "{now}"' for seam, now in changed.items())
    assert not changed, f"{ours} is written against vLLM {TABLE['version']}: read it beside these, then put them into vllm.toml\n{lines}"


def imports() -> Iterator[tuple[str, str]]:
    """Our file, and a name that it imports from vLLM."""
    for file in sorted(ENGINE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vllm":
                yield from ((str(file.relative_to(ROOT)), alias.name) for alias in node.names)


def test_the_table_has_all_that_is_imported() -> None:
    described = {part for ours in TABLE.values() if isinstance(ours, dict) for seam in ours for part in seam.replace(":", ".").split(".")}
    plain = set(TABLE["plain"]["names"])
    assert not {(file, name) for file, name in imports() if name not in described | plain}
    assert plain <= {name for _, name in imports()}
