"""The pins of `requirements.lock` and `requirements-gpu.lock`."""

from __future__ import annotations

from packaging.requirements import Requirement


def requirements(lock: str) -> list[Requirement]:
    """Of the text of a lock, without comments and hashes."""
    return [Requirement(line.rstrip(" \\")) for line in lock.splitlines() if line and not line.startswith(("#", " "))]
