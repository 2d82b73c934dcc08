"""Memory that processes of one user share, and that never outlives them.

A memfd has no name in any file system, so that there is nothing to unlink: the kernel frees it with the last process that holds it,
however these end, SIGKILL included. A segment in /dev/shm would need somebody to survive its owner, and a container's /dev/shm is small
(64 MiB in Kubernetes) where a memfd counts as memory only. Others reach it by its address below /proc, which the kernel opens to
whoever may read the owner's memory anyway; they need to be in the owner's PID namespace, as the processes of one Ray node are.
Seals keep it as long as it is, and mostly let nobody but its owner write to it. (Linux 5.1; memfd_create(2), fcntl(2).)
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from fcntl import fcntl
from pathlib import Path
from uuid import uuid4

from model_service.errors import MemoryUnavailable

_ADD_SEALS, _GET_SEALS = 1033, 1034
_SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 1, 2, 4, 16
"""Python 3.11's fcntl has them only where its C library had."""


@dataclass(frozen=True, slots=True)
class MemoryAddress:
    """`name` is told by the kernel for the open file: a process id may come to mean another process, but the name is used once."""

    pid: int
    descriptor: int
    name: str

    @property
    def path(self) -> str:
        return f"/proc/{self.pid}/fd/{self.descriptor}"


class OwnMemory:
    """The owner's end: `map` is writable. All of it is reserved, so that writing never fails; keep it small. `shared_writing`: others may
    write to it as well.

    Raises:
        MemoryUnavailable: there is no such memory.
    """

    def __init__(self, purpose: str, size_bytes: int, shared_writing: bool = False) -> None:
        name = f"{purpose}-{uuid4().hex}"
        try:
            self._descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError as error:
            raise MemoryUnavailable(f"no shared memory: {error}") from error
        try:
            os.posix_fallocate(self._descriptor, 0, size_bytes)
            self.map = mmap.mmap(self._descriptor, size_bytes)
            fcntl(self._descriptor, _ADD_SEALS, _SEAL | _SHRINK | _GROW | (0 if shared_writing else _FUTURE_WRITE))
        except OSError as error:
            os.close(self._descriptor)
            raise MemoryUnavailable(f"no shared memory of {size_bytes} bytes: {error}") from error
        self.address = MemoryAddress(os.getpid(), self._descriptor, name)

    def close(self) -> None:
        """Nobody can map it any more; those who have keep it. Views of `map` must be released before."""
        self.map.close()
        os.close(self._descriptor)


def mapped(address: MemoryAddress, writable: bool = False) -> mmap.mmap:
    """The memory at an address; it stays there when its owner has died.

    Raises:
        MemoryUnavailable: its owner is gone, or out of reach, or it is not sealed, or not for others to write to.
    """
    try:
        # Whatever else has come to stand there is better not opened at all.
        if Path(address.path).readlink() != Path(f"/memfd:{address.name} (deleted)"):
            raise MemoryUnavailable(f"{address.path} is not {address.name}")
        descriptor = os.open(address.path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
        try:
            if fcntl(descriptor, _GET_SEALS) & _SHRINK == 0:
                raise MemoryUnavailable(f"{address.name} may shrink")
            return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise MemoryUnavailable(f"{address.name} cannot be mapped: {error}") from error
