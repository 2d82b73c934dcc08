"""The scripts of `scripts/` that are Python, as modules."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

from tests.published.manifests import ROOT


def script(name: str) -> Any:
    loader = SourceFileLoader(f"maskcast_scripts_{name}", str(ROOT / "scripts" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
