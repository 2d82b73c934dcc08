"""The pins of `requirements.lock` and `requirements-gpu.lock`, and what the project asks for."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement

from tests.published.manifests import ROOT


def requirements(lock: str) -> list[Requirement]:
    """Of the text of a lock, without comments and hashes."""
    return [Requirement(line.rstrip(" \\")) for line in lock.splitlines() if line and not line.startswith(("#", " "))]


def asked_for(extra: str) -> Iterator[str]:
    """What the project asks for with an extra, also by others that this one has."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield from declared["dependencies"]
    for each in declared["optional-dependencies"][extra] if extra else ():
        if each.startswith("maskcast["):
            yield from asked_for(each.removeprefix("maskcast[").removesuffix("]"))
        else:
            yield each
