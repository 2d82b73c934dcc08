"""The packages for GPUs can be had: their versions go together, by what their makers say of them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from packaging.utils import canonicalize_name

from tests.published.locks import requirements
from tests.published.manifests import ROOT, program

LOCK = ROOT / "requirements-gpu.lock"
UNREACHED = re.compile(r"network|connect|dns|error sending|timed out|certificate|vllm was not found|no version of vllm", re.IGNORECASE)


def test_the_lock_is_a_resolution_of_what_the_project_asks_for() -> None:
    """Metadata alone are fetched, and nothing is installed."""
    compiling = [program("uv"), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:"]
    machine = ["--python-platform", "x86_64-manylinux_2_34", "--python-version", ".".join(map(str, sys.version_info[:3]))]
    asked = ["pyproject.toml", "--extra", "gpu", "--extra", "dev", "--constraint", LOCK.name]
    done = subprocess.run([*compiling, *machine, *asked], capture_output=True, text=True, cwd=ROOT, timeout=200, check=False)
    if done.returncode and UNREACHED.search(done.stderr):
        pytest.skip(f"no index here has the packages: {' '.join(done.stderr.split())[:200]}")
    assert done.returncode == 0, done.stderr
    assert sorted(pinned(done.stdout)) == sorted(pinned(LOCK.read_text(encoding="utf-8")))


def pinned(lines: str) -> list[tuple[str, str]]:
    """Names and versions, of what this Python gets."""
    return [(canonicalize_name(pin.name), str(pin.specifier)) for pin in requirements(lines) if pin.marker is None or pin.marker.evaluate()]
