"""A part in a process of its own: an error of CUDA's stays with the process that met it, and so does a capture that torch could not end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection

from load_tests.gpu.device import Device
from load_tests.gpu.plan import Clock, Plan
from load_tests.gpu.rows import Row, said

Measure = Callable[[Plan, Device], Iterable[Row]]
"""Found by the name of its module and its own, in the process."""
NO_TIME = "no time was left"
_SILENT_S = 180.0
"""No row takes longer: a process and Triton's first kernels take half a minute, the largest forwards some fifteen seconds."""


def measured(part: str, measure: Measure, plan: Plan, seconds: float, silent_s: float = _SILENT_S) -> Iterator[Row]:
    """Its rows as they come, for so many seconds. What goes wrong with the process is the last one."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(part, measure, plan, seconds, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        while ours.poll(silent_s):
            yield ours.recv()
        yield {"part": part, "failed": f"its process said nothing for {silent_s:g} s"}
    except EOFError:
        process.join()
        if process.exitcode:
            yield {"part": part, "failed": f"its process ended with status {process.exitcode}"}
    finally:
        process.kill()
        process.join()
        ours.close()


def _measure(part: str, measure: Measure, plan: Plan, seconds: float, out: Connection) -> None:
    clock = Clock(seconds)
    try:
        rows = iter(measure(plan, Device.found(plan.repeats)))
        while not clock.is_over:
            row = next(rows, None)
            if row is None:
                return
            out.send(row)
        out.send({"part": part, "skipped": NO_TIME})
    except Exception as error:  # noqa: BLE001  # the process's outermost frame
        out.send({"part": part, "failed": said(error)})
