"""The processes below this one, and what they keep in shared memory; Linux only (prctl, /proc)."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
KILL_ROUNDS = 5
SHARED_MEMORY = Path("/dev/shm")  # POSIX shared memory, not a temporary file of ours
# Written by Python's multiprocessing, OpenMP runtimes and torch; a process that is killed cannot remove its own.
KNOWN_PREFIXES = ("psm_", "sem.", "__KMP_REGISTERED_LIB_", "torch_", "vllm_dist_", "maskcast")


def die_with_parent() -> Callable[[], None]:
    """For `Popen(preexec_fn=…)`: the kernel kills the child when the thread that starts it ends, however it ends."""
    prctl, parent = ctypes.CDLL(None, use_errno=True).prctl, os.getpid()

    def set_up() -> None:
        if prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0 or os.getppid() != parent:
            os._exit(1)

    return set_up


class ProcessTree:
    """Everything that starts below this process from `watch()` on, orphans included."""

    def __init__(self) -> None:
        self._earlier: set[int] = set()
        self._earlier_segments: set[str] = set()
        self._adopted_earlier = False

    def watch(self) -> None:
        """From now on an orphaned descendant becomes our child instead of the init process's."""
        self._adopted_earlier = _adopts_orphans()
        _adopt_orphans(True)
        self._earlier = {child.pid for child in psutil.Process().children(recursive=True)}
        self._earlier_segments = _segments()

    def members(self) -> list[psutil.Process]:
        return [child for child in psutil.Process().children(recursive=True) if child.pid not in self._earlier]

    def running(self) -> set[str]:
        """The names of the members that have not ended; an ended one stays a member until its parent takes note."""
        names = set()
        for member in self.members():
            with suppress(psutil.NoSuchProcess):
                if member.status() != psutil.STATUS_ZOMBIE:
                    names.add(member.name())
        return names

    def end(self, patience_s: float) -> None:
        """End all members, kindly and then not, and unlink the shared memory that only they used."""
        used = {name for member in self.members() for name in segments_of(member.pid)}
        self._signal_all(psutil.Process.terminate, patience_s)
        for _ in range(KILL_ROUNDS):  # a member may start another one while it is being killed
            if not self._signal_all(psutil.Process.kill, patience_s):
                break
        _adopt_orphans(self._adopted_earlier)
        used |= {name for name in _segments() if name.startswith(KNOWN_PREFIXES)}
        self._unlink(used - self._earlier_segments)

    def _signal_all(self, act: Callable[[psutil.Process], None], patience_s: float) -> bool:
        members = self.members()
        for member in members:
            with suppress(psutil.NoSuchProcess):
                act(member)
        psutil.wait_procs(members, timeout=patience_s)
        return bool(self.members())

    @staticmethod
    def _unlink(names: Iterable[str]) -> None:
        wanted = set(names)
        if not wanted:
            return
        in_use = {inode for pid in psutil.pids() for inode in _held(pid)}
        for name in wanted:
            with suppress(FileNotFoundError):
                told = (SHARED_MEMORY / name).stat()
                if told.st_ino not in in_use and told.st_uid == os.getuid():
                    (SHARED_MEMORY / name).unlink()


def segments_of(pid: int) -> set[str]:
    """Names below /dev/shm of what a process has mapped or open; empty when it is gone or not ours to see."""
    held, names = _held(pid), set()
    for name in _segments() if held else ():
        with suppress(FileNotFoundError):
            if (SHARED_MEMORY / name).stat().st_ino in held:
                names.add(name)
    return names


def _segments() -> set[str]:
    return {path.name for path in SHARED_MEMORY.iterdir() if path.is_file()} if SHARED_MEMORY.is_dir() else set()


def _held(pid: int) -> set[int]:
    """Inodes below /dev/shm, not names: a semaphore is mapped before it has its own (glibc's `sem_open`)."""
    return _mapped(pid) | _open(pid)


def _mapped(pid: int) -> set[int]:
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {int(fields[4]) for line in lines if len(fields := line.split(maxsplit=5)) == 6 and _is_shared(fields[5])}


def _open(pid: int) -> set[int]:
    inodes = set[int]()
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            if _is_shared(str(link.readlink())):
                inodes.add(link.stat().st_ino)
    except OSError:
        return inodes
    return inodes


def _is_shared(path: str) -> bool:
    return path.startswith(f"{SHARED_MEMORY}/")


def _adopt_orphans(on: bool) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(on))


def _adopts_orphans() -> bool:
    flag = ctypes.c_int()
    ctypes.CDLL(None, use_errno=True).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(flag))
    return bool(flag.value)


def finishes(act: Callable[[], object], within_s: float) -> bool:
    """Calls `act` in a thread; False when it is still busy after `within_s` seconds. It is then left to itself: a thread cannot
    be stopped. What it raises is lost to the caller; the interpreter reports it."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(within_s)
    return not thread.is_alive()
