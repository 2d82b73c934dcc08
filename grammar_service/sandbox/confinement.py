"""What a process that handles a stranger's text may still ask of the kernel: memory, time, and the files that it has open (Linux).

A filter of system calls (seccomp(2), a program of classic BPF) lets through what computing takes and refuses everything else with EPERM: no
file, socket, process or thread can be opened, made, found or signalled, and no descriptor received. It cannot be taken off again.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Iterator, Sequence

from grammar_service.errors import MaskcastError

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_JMP|BPF_JGE|BPF_K, BPF_RET|BPF_K"""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1
"""SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EPERM"""
_NUMBER_AT, _MACHINE_AT = 0, 4
_FOREIGN_CALLS = 0x40000000
"""From here on are those of x32, which name the same calls once more (x86_64)."""

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""AUDIT_ARCH_… of each, and its column below."""
_CALLS: dict[str, tuple[int | None, int | None]] = {
    # What it has open.
    "read": (0, 63),
    "write": (1, 64),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    # Memory.
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    # Time and chance.
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "getrandom": (318, 278),
    # What it is.
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getrusage": (98, 165),
    "times": (100, 153),
    "sysinfo": (99, 179),
    "uname": (63, 160),
    "getcpu": (309, 168),
    "sched_getaffinity": (204, 123),
    # Waiting for itself, signals, the end.
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "membarrier": (324, 283),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "exit": (60, 93),
    "exit_group": (231, 94),
}


class NotConfined(MaskcastError):
    """The kernel, or this machine, has no such filter; the message says which."""


class _Program(ctypes.Structure):
    """`struct sock_fprog`"""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine() -> None:
    """From here on this process opens nothing any more. It must have one thread.

    Raises:
        NotConfined: it can be had only in part: no more descriptors, which root could change again.
    """
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    machine = platform.machine()
    if machine not in _MACHINES:
        raise NotConfined(f"no filter of system calls is known for {machine}")
    instructions = b"".join(_program(*_MACHINES[machine]))
    program = _Program(len(instructions) // 8, instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for call in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0)):
        if prctl(*call) != 0:
            raise NotConfined(f"the kernel takes no filter of system calls: {os.strerror(ctypes.get_errno())}")


def _program(machine: int, column: int) -> Iterator[bytes]:
    numbers = sorted(number for numbers in _CALLS.values() if (number := numbers[column]) is not None)
    yield _instruction(_LOAD, _MACHINE_AT)
    # Jumps count the instructions between: at the end stand "refuse", then "allow".
    yield _instruction(_EQUAL, machine, unless=len(numbers) + 2)
    yield _instruction(_LOAD, _NUMBER_AT)
    yield _instruction(_AT_LEAST, _FOREIGN_CALLS, when=len(numbers))
    yield from _allowed(numbers)
    yield _instruction(_RETURN, _REFUSE)
    yield _instruction(_RETURN, _ALLOW)


def _allowed(numbers: Sequence[int]) -> Iterator[bytes]:
    for place, number in enumerate(numbers):
        yield _instruction(_EQUAL, number, when=len(numbers) - place)


def _instruction(code: int, value: int, when: int = 0, unless: int = 0) -> bytes:
    """`struct sock_filter`; a jump passes over so many instructions when its condition holds, or `unless` it does."""
    return struct.pack("=HBBI", code, when, unless, value)
