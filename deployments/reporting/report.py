"""The one form of every benchmark's result: what ran, where, when, of which commit, which targets hold, and the raw rows."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

VECTORS = {"amx_bf16": "AMX", "avx512_bf16": "AVX-512 BF16", "avx512f": "AVX-512", "avx2": "AVX2"}
"""What x86-64 processors tell of theirs, the widest first."""

DIRTY = "-dirty"
"""Ends a commit where the code that ran differs from it."""

Row = Mapping[str, Any]
"""One raw run: names to strings, numbers, booleans or None."""


@dataclass(frozen=True, slots=True)
class Target:
    """What was promised and what was measured; `value` None where nothing could be measured, and then it does not hold."""

    name: str
    value: float | None
    unit: str
    target: str
    holds: bool

    @classmethod
    def at_most(cls, name: str, value: float | None, bound: float, unit: str) -> Target:
        value = _measured(value)
        return cls(name, value, unit, f"at most {bound:g}", value is not None and value <= bound)

    @classmethod
    def at_least(cls, name: str, value: float | None, bound: float, unit: str) -> Target:
        value = _measured(value)
        return cls(name, value, unit, f"at least {bound:g}", value is not None and value >= bound)

    def shown(self) -> str:
        """The value with three significant digits and its unit; large numbers whole."""
        if self.value is None:
            return "not measured"
        digits = f"{self.value:,.0f}" if abs(self.value) >= 1000 else f"{self.value:.3g}"
        return f"{digits} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class BenchReport:
    """`command` as one can type it; `machine` and `versions` say on what it ran, `commit` and `day` (ISO 8601) which code and when."""

    command: str
    machine: Mapping[str, str | float]
    versions: Mapping[str, str]
    targets: Sequence[Target]
    rows: Sequence[Row]
    commit: str
    day: str

    @classmethod
    def here(cls, command: str, packages: Iterable[str], targets: Sequence[Target], rows: Sequence[Row]) -> BenchReport:
        """A report of this machine and these installed packages."""
        return cls(command, machine(), versions(packages), targets, rows, commit(), date.today().isoformat())

    def publish(self, console: Console, path: Path | None) -> int:
        """Show what was promised, write it all where there is a path, and give the exit status: 0 if every target holds."""
        console.print(self.table())
        if path is not None:
            self.write(path)
        return 0 if all(target.holds for target in self.targets) else 1

    def write(self, path: Path) -> None:
        """As JSON, whole or not at all; folders are made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.new")
        new.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        new.replace(path)

    @classmethod
    def read(cls, path: Path) -> BenchReport:
        """What `write` wrote. Raises OSError, ValueError, TypeError, KeyError: it is no such file."""
        tree = json.loads(path.read_text(encoding="utf-8"))
        tree["targets"] = [Target(**target) for target in tree["targets"]]
        return cls(**tree)

    def table(self) -> Table:
        """The targets, for a terminal."""
        table = Table(title="targets", title_justify="left")
        table.add_column("target")
        for heading in ("measured", "promised", ""):
            table.add_column(heading, no_wrap=True)
        for target in self.targets:
            table.add_row(target.name, target.shown(), target.target, "[green]holds[/]" if target.holds else "[bold red]missed[/]")
        return table


def machine() -> dict[str, str | float]:
    """Processor, cores, memory in GiB and operating system."""
    return {
        "processor": processor(_cpuinfo()),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
    }


def commit() -> str:
    """Twelve digits of the commit that is checked out, with "-dirty" where code differs from it; "" outside of a repository."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        found = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ":/*.py", ":/*.lock"], check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{found}{DIRTY}" if changed else found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Installed versions by name, Python's among them."""
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def processor(cpuinfo: str) -> str:
    """The model that Linux names, and the widest vectors that an engine computes with there: some makers give a dozen generations one name,
    and products of matrices in bfloat16 take eight times as long where the processor has none."""
    of = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in cpuinfo.splitlines())}
    flags = set(of.get("flags", "").split())
    vectors = next((name for flag, name in VECTORS.items() if flag in flags), "")
    return " ".join(filter(None, [of.get("model name") or platform.machine(), vectors and f"with {vectors}"]))


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def _measured(value: float | None) -> float | None:
    """JSON has no infinities: what is not finite was not measured."""
    return value if value is not None and math.isfinite(value) else None
