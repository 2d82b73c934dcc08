"""Ingresses and compile replicas decide about grammars without the libraries that compile them, which take ten seconds to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "xgrammar", "llguidance", "vllm")


@pytest.mark.parametrize(
    "module", ["grammar_service.resolve", "grammar_service.compiler.service", "deployments.api.deployment", "deployments.replicas.compiler"]
)
def test_deciding_imports_no_library_that_compiles(module: str) -> None:
    program = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []
