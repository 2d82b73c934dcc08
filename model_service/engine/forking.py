"""How engine cores, and their workers, begin on CPUs (vLLM 0.32: `v1/engine/utils.py`, `v1/executor/multiproc_executor.py`).

A process that is spawned imports for eight seconds of a processor's time before it loads anything, which is most of what a restart takes.
So cores are forked from one that has imported it all, and has no threads. A worker is forked from its core, which has computed nothing by
then; where it has CPUs of its own it is spawned: OpenMP reads which ones when it is imported. On GPUs all are spawned, as vLLM has it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess

from model_service.engine.environment import BIND, UNBOUND

PR_SET_PDEATHSIG = 1
_IMPORTED = [
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",  # ahead of all other workers
    "model_service.engine.core.async_scheduler",
    "model_service.engine.core.lookahead.scheduler",
    "model_service.engine.workers.cpu_worker",
    "model_service.engine.workers.executors",
]


class _ForkedCore(ForkServerProcess):
    """Has the environment of whoever starts it, as one that is spawned has. It ends with the process that it is forked from: that one
    alone tells how it fares, and without it counts as ended."""

    _environment: dict[str, str]

    def start(self) -> None:
        self._environment = dict(os.environ)
        super().start()

    def run(self) -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for name in os.environ.keys() - self._environment.keys():
            del os.environ[name]
        # What is the same stays where it is: a process's title is written over its arguments, which are found from there.
        os.environ.update({name: value for name, value in self._environment.items() if os.environ.get(name) != value})
        super().run()


class _ForkServerContext(ForkServerContext):
    Process = _ForkedCore


def begin_importing() -> None:
    """Begins the process that cores are forked from, where there is none. It has this one's environment, ends with it, and imports
    meanwhile."""
    forkserver.set_forkserver_preload(_IMPORTED)
    forkserver.ensure_running()


def fork_cores() -> None:
    """For all engines of this process from here on."""
    import vllm.v1.engine.utils as launching  # the replica begins importing before it imports vLLM itself

    begin_importing()
    launching.get_mp_context = _ForkServerContext


def fork_workers() -> None:
    """For all workers of this engine core, where they have no CPUs of their own."""
    import vllm.v1.executor.multiproc_executor as executing

    if os.environ.get(BIND) == UNBOUND:
        executing.get_mp_context = lambda: get_context("fork")
