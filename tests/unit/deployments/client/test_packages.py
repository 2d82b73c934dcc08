"""Which packages the client needs, by the way that it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.published.locks import asked_for

HIDING = """
import importlib, json, sys
sys.modules.update(dict.fromkeys(json.load(sys.stdin)))
importlib.import_module(sys.argv[1])
"""
"""A module that is None in `sys.modules` cannot be imported, as if it were not installed."""
IN_RAY = ("colorama", "psutil")
"""Ray's wheel brings them along under the same names."""


@pytest.mark.parametrize(
    ("extra", "module"), [("", "deployments.client"), ("handle", "deployments.client.by_handle"), ("data", "deployments.client.ray_data")]
)
def test_it_is_imported_with_what_its_extra_installs(extra: str, module: str) -> None:
    present = {"maskcast", *IN_RAY, *closure(asked_for(extra))}
    others = [
        name
        for name, distributions in packages_distributions().items()
        if name not in sys.stdlib_module_names and not present & {canonicalize_name(each) for each in distributions}
    ]
    assert "vllm" in others
    assert ("ray" in others) is (extra == "")
    done = subprocess.run([sys.executable, "-c", HIDING, module], input=json.dumps(others), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def closure(asked: Iterable[str]) -> set[str]:
    """The distributions that such requirements install, of those that are installed."""
    found, waiting = set[tuple[str, frozenset[str]]](), [Requirement(each) for each in asked]
    while waiting:
        each = waiting.pop()
        if (key := (canonicalize_name(each.name), frozenset(each.extras))) not in found:
            found.add(key)
            waiting.extend(required(each))
    return {name for name, _ in found}


def required(requirement: Requirement) -> Iterator[Requirement]:
    try:
        texts = requires(requirement.name) or ()
    except PackageNotFoundError:  # for another kind of machine
        return
    for each in map(Requirement, texts):
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
            yield each
