"""A place for one child, which is replaced whenever it has misbehaved."""

from __future__ import annotations

import asyncio
import logging
import re
import time

from grammar_service.errors import CompileFailed, CompileTimeout, PoolBusy
from grammar_service.sandbox.child import ChildDied, CompileChild
from grammar_service.sandbox.nursery import Nursery
from grammar_service.sandbox.wire import Job, Refused, Result, Task

_LOG = logging.getLogger(__name__)
_TRIES = 2
_ERROR_NAME = re.compile(
    r"^(?:terminate called after throwing an instance of ')?([a-z_.:]{0,40}(?:[A-Z]\w{0,40}(?:Error|Exception)|bad_alloc))\b", re.MULTILINE
)
_LOOKED_AT_S = 0.01
"""The least time between two looks at a child's clock."""
_PATIENCE = 4
"""Multiple of the deadline that a job may take in wall time. A child that waits for a processor is exempt: on a busy machine it may get
1 % of one."""


class Slot:
    """Runs one job at a time; its user sees to that. The child dies on a deadline, on a crash, when it runs out of memory and when the
    caller is cancelled; its successor is forked in the background. Nor does a child serve two tenants."""

    def __init__(self, nursery: Nursery, background: bool) -> None:
        self._nursery = nursery
        self._background = background
        self._child: asyncio.Task[CompileChild] | None = None
        self._served: str | None = None
        self.replaced = 0

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is none."""
        ready = self._child is not None and self._child.done() and not self._child.cancelled() and self._child.exception() is None
        return self._child.result().pid if self._child and ready else None

    async def start(self) -> None:
        """Wait for a child. Raises PoolUnavailable."""
        await self._ready()

    async def run(self, job: Task, deadline_s: float, tenant: str = "") -> Result:
        """The child's answer; the deadline is of processor time from when a child takes the job, and is not extended for a second one.

        A job whose child died is tried once more: a child that was killed from outside may have been dying when it got the job, and the
        end of its connection comes last. A compiler that crashes on a grammar does so again.

        Raises:
            CompileTimeout, CompileFailed: and the child is replaced.
            PoolBusy: the child hangs, that is, it is not runnable. It is replaced as well.
            PoolUnavailable: no child could be had.
        """
        left_s = deadline_s
        needs_tables = isinstance(job, Job) and job.spec.canonical
        for _ in range(_TRIES):
            child = await self._ready_for(tenant, needs_tables)
            had_s = child.processor_s()
            try:
                return await self._attempt(child, job, left_s)
            except TimeoutError:
                raise CompileTimeout(f"the grammar did not compile within {deadline_s:g} s of processor time") from None
            except ChildDied:
                left_s -= max(0.0, child.processor_s() - had_s)  # known until it is reaped
                _LOG.warning("the compile child died: %s", error_name(child.last_words()))
        raise CompileFailed("the compiler crashed on the grammar")

    async def close(self) -> None:
        """Kill the child and wait for its end."""
        if self._child is not None:
            self._child.cancel()
            await _put_down(self._child)

    async def _attempt(self, child: CompileChild, job: Task, deadline_s: float) -> Result:
        """Raises TimeoutError, PoolBusy, ChildDied. The child is replaced where it may not be asked again."""
        misbehaved = True
        try:
            result = await _in_time(child, job, deadline_s)
            misbehaved = isinstance(result, Refused) and result.refusal.code == CompileFailed.code
            return result
        finally:
            if misbehaved:
                self.replaced += 1
                self._replace()

    async def _ready_for(self, tenant: str, needs_tables: bool) -> CompileChild:
        """One that no other tenant has had: what a stranger's text has made of a child is between him and his own grammars. Tables take
        seconds, and children come and go, so that one that needs them is forked after they are made."""
        if needs_tables:
            await self._nursery.make_tables()
        if self._child is not None and self._served not in (None, tenant):
            self._replace()
        child = await self._ready()
        if needs_tables and not child.has_tables:
            self._replace()
            child = await self._ready()
        self._served = tenant
        return child

    async def _ready(self) -> CompileChild:
        child = self._replace() if self._child is None or _is_lost(self._child) else self._child
        return await asyncio.shield(child)

    def _replace(self) -> asyncio.Task[CompileChild]:
        self._served = None
        self._child = asyncio.create_task(self._successor(self._child))
        return self._child

    async def _successor(self, old: asyncio.Task[CompileChild] | None) -> CompileChild:
        if old is not None:
            await _put_down(old)
        return await self._nursery.fork(self._background)


def error_name(words: str) -> str:
    """What a process that died called its end. Nothing else of its last words: schemas may stand in them, and logs hold none."""
    names = _ERROR_NAME.findall(words)
    return names[-1] if names else "it named no error"


async def _in_time(child: CompileChild, job: Task, deadline_s: float) -> Result:
    """Looks at its clock when that can have come to the deadline at the earliest. Raises TimeoutError, PoolBusy, ChildDied."""
    ends_s, until = child.processor_s() + deadline_s, time.monotonic() + _PATIENCE * deadline_s
    running = asyncio.create_task(child.run(job))
    try:
        while (left_s := ends_s - child.processor_s()) > 0 and (time.monotonic() < until or child.is_runnable()):
            await asyncio.wait((running,), timeout=max(left_s, _LOOKED_AT_S))
            if running.done():
                return running.result()
    finally:
        running.cancel()
        del running  # breaks a reference cycle with its error's traceback
    if left_s > 0:
        raise PoolBusy("the process that compiled the grammar hung")
    raise TimeoutError


def _is_lost(child: asyncio.Task[CompileChild]) -> bool:
    if not child.done():
        return False
    return child.cancelled() or child.exception() is not None or not child.result().is_alive


async def _put_down(child: asyncio.Task[CompileChild]) -> None:
    await asyncio.wait((child,))  # whoever is cancelled here goes no further, where the child's own end is none of his
    if not child.cancelled() and child.exception() is None:
        await child.result().kill()
