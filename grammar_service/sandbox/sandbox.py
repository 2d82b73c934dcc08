"""A compiler that can be killed: forked children behind fair queues."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from grammar_service.backends.channels.harmony import HarmonyBackend
from grammar_service.backends.channels.kimi import KimiBackend
from grammar_service.backends.protocol import CompiledPayload
from grammar_service.errors import CompileTimeout, PoolUnavailable
from grammar_service.limits import Limits, check_size
from grammar_service.messages import AnswerCheck, CompileRequest
from grammar_service.relaxation import Relax
from grammar_service.resolve import Resolution
from grammar_service.sandbox.nursery import Nursery
from grammar_service.sandbox.slot import Slot
from grammar_service.sandbox.turns import FairTurns
from grammar_service.sandbox.vouched import vouched
from grammar_service.sandbox.wire import Job, Judged, Judging, Payload, Refused, Resolved, Result, Setup, Task
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.source import TokenizerSource

T = TypeVar("T")

QUICK = frozenset(f"{prefix}llguidance" for prefix in ("", HarmonyBackend.PREFIX, KimiBackend.PREFIX))
"""Backends that compile in about a millisecond. They have children of their own, so that they never wait for a slow one."""
QUICK_CHILDREN = 2
QUICK_DEADLINE_S = 2.0
"""Several times what a quick backend's grammar may take at all (`backends.load_cost`), since it keeps others waiting."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """`limits` bound a spec. `memory_limit_bytes` is the address space that a child may take beyond what it holds when warm,
    `output_limit_bytes` bounds a payload. `workers` children compile what takes long, at a lower priority than the rest of the
    machine. At most `max_waiting` jobs wait for them. `canonical`: most specs are, so that the tables for these are made ahead."""

    limits: Limits = field(default_factory=Limits)
    memory_limit_bytes: int = 4 << 30
    output_limit_bytes: int = 64 << 20
    workers: int = 2
    max_waiting: int = 64
    threads: int = 1
    start_timeout_s: float = 120.0
    canonical: bool = False


class Sandbox:
    """Compiles specs, each tenant in its turn. One zygote, children for quick backends, and the workers for the others."""

    def __init__(
        self,
        tokenizer: str | Path | TokenizerSource,
        settings: SandboxSettings = SandboxSettings(),
        waited: Callable[[str, float], None] | None = None,
    ) -> None:
        """`waited` hears of each compile that a child has taken: its backend, and the seconds until then."""
        memory, output = settings.memory_limit_bytes, settings.output_limit_bytes
        setup = Setup(TokenizerSource.named(tokenizer), settings.limits, memory, output, settings.threads, os.getpid(), settings.canonical)
        self._limits = settings.limits
        self._nursery = Nursery(setup, settings.start_timeout_s)
        self._quick = [Slot(self._nursery, background=False) for _ in range(QUICK_CHILDREN)]
        self._workers = [Slot(self._nursery, background=True) for _ in range(settings.workers)]
        self._quick_turns = FairTurns(self._quick, settings.max_waiting, time.monotonic)
        self._turns = FairTurns(self._workers, settings.max_waiting, time.monotonic)
        self.fingerprint = ""
        self._waited = waited

    @property
    def pids(self) -> list[int]:
        """The process ids of the warm children, the quick ones first."""
        return [slot.pid for slot in self._slots if slot.pid is not None]

    @property
    def replaced(self) -> int:
        """Children that were killed or have died."""
        return sum(slot.replaced for slot in self._slots)

    @property
    def waiting(self) -> int:
        """Jobs that no child has taken yet."""
        return self._quick_turns.waiting + self._turns.waiting

    async def start(self) -> None:
        """Wait for warm children; harmless when they are. Raises PoolUnavailable."""
        self.fingerprint = await self._nursery.fingerprint()
        await asyncio.gather(*(slot.start() for slot in self._slots))

    async def compile(self, request: CompileRequest, deadline_s: float, made: Callable[[], T | None] = lambda: None) -> CompiledPayload | T:
        """The payload of the request's spec on its backend; the deadline counts from when a warm child takes the job. Or what has been
        `made` when its turn comes.

        Raises:
            CompileTimeout, CompileFailed: and the child is replaced.
            GrammarError: the compiler's own verdict.
            PoolBusy: the queue is full.
            PoolUnavailable: no child could be started, the sandbox is closed, or the key is not the grammar's.
        """
        result = await self._run(Job(request.spec, request.backend, request.library_source), request.tenant, deadline_s, made)
        if not isinstance(result, Result):
            return result
        assert isinstance(result, Payload)
        # It names what every replica and Redis will take the artifact for, so it is not believed but computed, unless the child was told.
        if result.key != (request.key if request.library_source is None else None):
            raise PoolUnavailable("the request's key is not its grammar's here: do all nodes run the same versions and model?")
        # What this child knows of other grammars of its tenant, an engine need not know.
        if result.payload.load_ms > deadline_s * 1000:
            raise CompileTimeout(f"loading the grammar would take an engine more than {deadline_s:g} s")
        return result.payload

    async def resolve(self, spec: GrammarSpec, deadline_s: float, tenant: str, relax: Relax = Relax.NOTHING) -> Resolution:
        """As `resolve` does, for specs so long that it takes a while; or as `resolve_relaxed`. Raises as `compile` does."""
        told = await self._run(Job(spec, None, relax=relax), tenant, deadline_s)
        assert isinstance(told, Resolved)
        # In a thread: of half a mebibyte, the key takes a tenth of a second and more.
        return await asyncio.to_thread(vouched, told, spec, relax, self._limits, self.fingerprint)

    async def judge(self, check: AnswerCheck) -> tuple[str | None, ...]:
        """What is wrong with each answer, None where nothing is. Raises as `compile` does: CompileTimeout, CompileFailed where the check
        itself took too long, or too much."""
        told = await self._run(Judging(check.spec, check.answers), check.tenant, check.deadline_s)
        assert isinstance(told, Judged)
        return told.faults

    async def _run(self, job: Task, tenant: str, deadline_s: float, made: Callable[[], T | None] = lambda: None) -> Result | T:
        check_size(job.spec, self._limits)
        quick, came = isinstance(job, Job) and job.backend in QUICK, time.monotonic()
        async with (self._quick_turns if quick else self._turns).turn(tenant) as slot:
            if (found := made()) is not None:
                return found
            if self._waited is not None and isinstance(job, Job) and job.backend is not None:
                self._waited(job.backend, time.monotonic() - came)
            result = await slot.run(job, min(deadline_s, QUICK_DEADLINE_S) if quick else deadline_s, tenant)
        if isinstance(result, Refused):
            raise result.refusal.error()
        return result

    async def close(self) -> None:
        """Kill all processes and wait for their end; a compile that runs fails."""
        self._nursery.fork_no_more()
        await asyncio.gather(*(slot.close() for slot in self._slots))
        await self._nursery.close()

    @property
    def _slots(self) -> list[Slot]:
        return [*self._quick, *self._workers]
