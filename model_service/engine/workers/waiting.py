"""How an engine core and its workers wait for each other on CPUs (vLLM 0.32: `distributed/device_communicators/shm_broadcast.py`).

They take turns, and vLLM lets whoever waits look again without a pause: that saves microseconds where the other is a GPU. Where it is a
CPU, whoever waits takes it from whoever is waited for, and from the ingress. Nor can they wait for vLLM's notifications alone: its sockets
keep one, and drop the next while that is on its way.
"""

from __future__ import annotations

import ctypes
import time

from vllm.distributed.device_communicators import shm_broadcast

LOOK_S = 5e-5
"""Seconds: a fortieth of the shortest step that was seen on a CPU, 2 ms."""
PR_SET_TIMERSLACK = 29
SLACK_NS = 1000
"""Nanoseconds: Linux else lets threads sleep 50 microseconds longer than they ask for."""


class _Asleep(shm_broadcast.SpinCondition):
    def wait(self, timeout_ms: int | None = None) -> None:
        if time.monotonic() <= self.last_read + self.busy_loop_s:
            time.sleep(LOOK_S)
        else:
            super().wait(timeout_ms)


def wait_asleep() -> None:
    """For all queues that this process opens from here on, and this thread.

    Raises:
        OSError: this is no Linux.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    shm_broadcast.SpinCondition = _Asleep
