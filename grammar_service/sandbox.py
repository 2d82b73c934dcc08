"""A compiler that can be killed: one warm child process behind a lock, replaced whenever it has misbehaved."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from grammar_service.compile_child import ChildDied, CompileChild
from grammar_service.errors import CompileFailed, CompileTimeout, MaskcastError, PoolUnavailable
from grammar_service.messages import Refusal
from grammar_service.sandbox_wire import Job, Result, Setup
from grammar_service.spec import GrammarSpec

_LOG = logging.getLogger(__name__)


class Sandbox:
    """Compiles one spec at a time, in arrival order.

    `memory_limit_bytes` is the address space that the child may take beyond what it holds when warm. The child dies on a
    deadline, on a crash, when it runs out of memory and when the caller is cancelled; its successor warms up in the background
    while the next caller waits.
    """

    def __init__(
        self,
        tokenizer_path: str | Path,
        vocab_size: int | None,
        memory_limit_bytes: int,
        threads: int = 1,
        start_timeout_s: float = 120.0,
    ) -> None:
        self._setup = Setup(str(tokenizer_path), vocab_size, memory_limit_bytes, threads, os.getpid())
        self._start_timeout_s = start_timeout_s
        self._lock = asyncio.Lock()
        self._child: asyncio.Task[CompileChild] | None = None
        self._closed = False
        self.fingerprint = ""
        self.replaced = 0

    @property
    def pid(self) -> int | None:
        """The warm child's process id, None while there is none."""
        ready = self._child is not None and self._child.done() and not self._child.cancelled() and self._child.exception() is None
        return self._child.result().pid if self._child and ready else None

    async def start(self) -> None:
        """Wait for a warm child; harmless when there is one. Raises PoolUnavailable."""
        self.fingerprint = (await self._warm_child()).fingerprint

    async def compile(self, spec: GrammarSpec, backend: str, deadline_s: float) -> bytes:
        """The payload of `spec`; the deadline counts from when a warm child takes the job.

        Raises:
            CompileTimeout, CompileFailed: and the child is replaced.
            GrammarError: the compiler's own verdict.
            PoolUnavailable: no child could be started, or the sandbox is closed.
        """
        job = Job(spec.kind.value, spec.text, spec.whitespace, backend)
        async with self._lock:
            child = await self._warm_child()
            result = await self._run(child, job, deadline_s)
        if result.payload is not None:
            return result.payload
        raise _error(result)

    async def close(self) -> None:
        """Kill the child and wait for its end; a compile that runs fails."""
        self._closed = True
        if self._child is not None:
            await _put_down(self._child)

    async def _run(self, child: CompileChild, job: Job, deadline_s: float) -> Result:
        misbehaved = True
        try:
            async with asyncio.timeout(deadline_s):
                result = await child.compile(job)
            misbehaved = result.code == CompileFailed.code
            return result
        except TimeoutError:
            raise CompileTimeout(f"the grammar did not compile within {deadline_s:g} s") from None
        except ChildDied:
            _LOG.warning("the compile child crashed: %s", child.last_words()[-2000:])
            raise CompileFailed("the compiler crashed on the grammar") from None
        finally:
            if misbehaved:
                self._replace()

    def _replace(self) -> None:
        old = self._child
        self.replaced += 1
        self._child = None if self._closed else asyncio.create_task(self._successor(old))

    async def _successor(self, old: asyncio.Task[CompileChild] | None) -> CompileChild:
        if old is not None:
            await _put_down(old)
        return await CompileChild.spawn(self._setup, self._start_timeout_s)

    async def _warm_child(self) -> CompileChild:
        if self._closed:
            raise PoolUnavailable("the compiler is closed")
        if self._child is None or _is_lost(self._child):
            self._child = asyncio.create_task(self._successor(self._child))
        try:
            return await asyncio.shield(self._child)
        except (ChildDied, TimeoutError, OSError) as error:
            raise PoolUnavailable(f"the compile child does not start: {error}") from None


def _is_lost(child: asyncio.Task[CompileChild]) -> bool:
    if not child.done():
        return False
    return child.cancelled() or child.exception() is not None or not child.result().is_alive


async def _put_down(child: asyncio.Task[CompileChild]) -> None:
    child.cancel()
    await asyncio.wait([child])
    if not child.cancelled() and child.exception() is None:
        await child.result().kill()


def _error(result: Result) -> MaskcastError:
    return Refusal(result.code, result.message, result.pointer).error()
