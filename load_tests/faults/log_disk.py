"""A small disk of its own for what a node logs: a tmpfs in a mount namespace, which root may make, and others in a user namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from load_tests.errors import BenchFailed

SIZE_MIB = 64
"""Room for what a node logs in a whole run."""
BLOCK = bytes(4096)
_NAMESPACE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")
_MOUNT = f'mount -t tmpfs -o size={SIZE_MIB}m logs "$0" && exec "$@"'


def why_not() -> str:
    """Why there can be none here; empty: there can."""
    if shutil.which("unshare") is None:
        return "there is no unshare (util-linux)"
    tried = subprocess.run([*_NAMESPACE, "sh", "-c", _MOUNT, "/mnt", "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode else ""


def mounting(folder: Path) -> list[str]:
    """What a command begins with that sees a small disk at that folder, which must be there; nobody else does."""
    return [*_NAMESPACE, "sh", "-c", _MOUNT, str(folder)]


@contextmanager
def filled(folder: Path, pid: int) -> Iterator[None]:
    """Not a byte more can be written to the disk that this process sees there, until the end of the block."""
    seen = Path(f"/proc/{pid}/root", folder.relative_to("/"))
    filler = seen / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(BLOCK)
                except OSError:
                    break
        if os.statvfs(seen).f_bavail:
            raise BenchFailed(f"{folder} cannot be filled")
        yield
    finally:
        filler.unlink(missing_ok=True)
