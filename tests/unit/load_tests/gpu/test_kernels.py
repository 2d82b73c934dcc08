"""Whose kernel is measured, and whether it can be."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from load_tests.gpu.device import Device
from load_tests.gpu.kernels import measured
from load_tests.gpu.plan import SMALL
from tests.published.documents import ROOT

DEVICE = Device(torch.device("cpu"), 1)
KERNEL = "kernels/apply_token_bitmask_inplace_triton.py"
PROGRAM = """
import sys
sys.modules["xgrammar"] = None  # not installed
from dataclasses import replace
from pathlib import Path
import torch
from load_tests.gpu.device import Device
from load_tests.gpu.kernels import measured
from load_tests.gpu.plan import SMALL
kernel = Path(sys.argv[1]) if len(sys.argv) > 1 else None
row = next(iter(measured(replace(SMALL, xgrammar_kernel=kernel), Device(torch.device("cpu"), 1))))
print(*sorted(name for name in row if name.startswith("xgrammar")), row["wrong"])
"""


def without_xgrammar(*arguments: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=True).stdout.split()


def test_all_masks_are_as_the_reference_says() -> None:
    rows = list(measured(SMALL, DEVICE))
    assert {row[name] for row in rows for name in ("wrong", "torch_wrong", "xgrammar_wrong")} == {0}
    assert not [row for row in rows if "failed" in row]


def test_where_xgrammar_is_not_installed_its_file_is_enough() -> None:
    (package,) = (find_spec("xgrammar") or pytest.fail("it is installed here")).submodule_search_locations or []
    assert without_xgrammar() == ["0"]
    # It is loaded without the rest of xgrammar, and asks for a GPU when it is called.
    assert without_xgrammar(str(Path(package) / KERNEL)) == ["xgrammar_not", "0"]


def test_work_that_cannot_run_is_not_captured() -> None:
    def broken() -> None:
        raise ValueError("no such kernel")

    with pytest.raises(ValueError, match="no such kernel"):
        DEVICE.rehearsed(broken)
