"""Tells a process that hangs from one that is slow, or that a busy machine gives no processor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PERIOD_S = 1.0
"""Between two looks."""
IDLE_SHARE = 0.02
"""Of a processor; less is that of a process that only waits."""
SPINNING = 4
"""× `hang_s`: what a thread that makes no progress may have of a processor's time. A step of a long prompt may compute for long."""
STOPPED = frozenset("Tt")
RUNNABLE = "R"
TICKS = 100
"""A second, of the kernel's clock in `/proc` (USER_HZ: 100 on all architectures of Linux today)."""


@dataclass(frozen=True, slots=True)
class ThreadState:
    """`code`: R runs or would if it had a processor, S and D wait, T is stopped (proc(5))."""

    code: str
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen of those who work together: whether they have work, a count of what they have done, and the state of the thread of each
    that does it, by process or thread id."""

    has_work: bool
    progress: int
    threads: Mapping[int, ThreadState]


class HangWatch:
    """Judges by what happened between two looks. Time counts against those who work together where nothing was done in it, and either one
    of them is stopped, or all of them only wait: for `hang_s` seconds in a row. Who computes without progress has `SPINNING` times as
    much of a processor; who has no processor loses nothing."""

    def __init__(self, hang_s: float) -> None:
        self._hang_s = hang_s
        self._last: Look | None = None
        self._last_at = 0.0
        self._waited_s = self._computed_s = 0.0

    def hangs(self, look: Look, now: float) -> bool:
        """`now` in seconds, of a clock that does not run backwards."""
        last, since, self._last, self._last_at = self._last, self._last_at, look, now
        if last is None or not (look.has_work and last.has_work) or look.progress != last.progress:
            self._waited_s = self._computed_s = 0.0
            return False
        elapsed = min(now - since, 2 * PERIOD_S)  # whoever looks late was given no processor either
        computed = max((state.cpu_s - last.threads.get(name, state).cpu_s for name, state in look.threads.items()), default=0.0)
        codes = {state.code for state in look.threads.values()}
        waits = computed <= IDLE_SHARE * elapsed and RUNNABLE not in codes
        if waits or not codes.isdisjoint(STOPPED):
            self._waited_s += elapsed
        else:
            self._computed_s += computed
        return self._waited_s >= self._hang_s or self._computed_s >= SPINNING * self._hang_s


def main_threads(processes: Iterable[int]) -> dict[int, ThreadState]:
    """Of the processes of this machine that are there."""
    found = {process: thread_state(process, process) for process in processes}
    return {process: state for process, state in found.items() if state is not None}


def thread_state(process: int, thread: int) -> ThreadState | None:
    """None: it has ended."""
    try:
        text = Path(f"/proc/{process}/task/{thread}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    code, *fields = text[text.rindex(")") + 2 :].split()
    user, system = fields[10:12]
    return ThreadState(code, (int(user) + int(system)) / TICKS)
