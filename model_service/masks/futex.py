"""Waiting for a word of shared memory to change (futex(2)): at no cost while nothing happens, and woken at once when it does."""

from __future__ import annotations

import ctypes
import errno
import platform
import time

_SYSCALLS = {"x86_64": 202, "aarch64": 98}
_WAIT, _WAKE = 0, 1
_EVERYBODY = (1 << 31) - 1
_AS_MEANT = frozenset({errno.EAGAIN, errno.ETIMEDOUT, errno.EINTR})


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Futex:
    """`address` is that of an aligned uint32 in a shared mapping, which may be read-only for those who wait.

    Must not be used when the mapping is gone.
    """

    def __init__(self, address: int) -> None:
        self._address = address
        self._number = _SYSCALLS.get(platform.machine(), -1)
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long

    def wait(self, value: int, timeout_s: float) -> None:
        """Sleep while the word is `value`, until it is woken, or the time is over; may return early for no reason."""
        timeout = _Timespec(int(timeout_s), int(timeout_s % 1 * 1e9))
        if self._call(_WAIT, value, ctypes.byref(timeout)) < 0 and ctypes.get_errno() not in _AS_MEANT:
            # The kernel has none for us: as good as it goes, and never a busy loop.
            time.sleep(timeout_s)

    def wake(self) -> None:
        """Wake all who wait; change the word first."""
        self._call(_WAKE, _EVERYBODY, None)

    def _call(self, operation: int, value: int, timeout: object) -> int:
        number, address = ctypes.c_long(self._number), ctypes.c_void_p(self._address)
        return int(self._syscall(number, address, ctypes.c_int(operation), ctypes.c_uint32(value), timeout, None, ctypes.c_uint32(0)))
