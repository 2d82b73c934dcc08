"""What processes share in memory: files of no file system (memfd), which rings and figures are, and those of /dev/shm, as Ray has them.

Linux only (/proc). Both are looked at as they are to the kernel: names say little, since most are unlinked as soon as they are open.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from deployments.local.processes import SHARED_MEMORY

_MEMFD = "/memfd:"
_BLOCK_BYTES = 512
"""Of `st_blocks`, whatever the file system's own are."""


def memfds_of(pid: int) -> dict[int, int]:
    """Bytes by inode of those that a process has open or mapped; empty when it is gone or not ours to see. One that is only mapped counts
    as far as it is mapped."""
    return _mapped(pid) | _open(pid)


def used_bytes() -> int:
    """Of /dev/shm, whoever uses it, and however little is left to see of it there."""
    found = os.statvfs(SHARED_MEMORY)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _open(pid: int) -> dict[int, int]:
    found = dict[int, int]()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if str(link.readlink()).startswith(_MEMFD):
                    status = link.stat()
                    found[status.st_ino] = status.st_blocks * _BLOCK_BYTES
    return found


def _mapped(pid: int) -> dict[int, int]:
    found = dict[int, int]()
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith(_MEMFD):
                first, last = (int(end, 16) for end in fields[0].split("-"))
                inode, end = int(fields[4]), int(fields[2], 16) + last - first
                found[inode] = max(found.get(inode, 0), end)
    return found
