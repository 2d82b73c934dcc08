"""What a forked child does: compiles one job after another, within its limits."""

from __future__ import annotations

import os
import resource
import socket
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from grammar_service.backends import Backend, select_backend
from grammar_service.errors import CompileFailed, GrammarError, GrammarTooLarge, UnsupportedGrammar
from grammar_service.key import grammar_key
from grammar_service.limits import check_limits
from grammar_service.messages import Refusal
from grammar_service.own_memory import address_space_bytes
from grammar_service.relaxation import Relax
from grammar_service.relaxation.judging import judged
from grammar_service.resolve import resolve, resolve_relaxed
from grammar_service.sandbox.confinement import NotConfined, confine
from grammar_service.sandbox.wire import Job, Judged, Judging, Payload, Refused, Resolved, Result, Setup, Task, frame, read_task
from grammar_service.spec import GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_BACKGROUND_NICE = 10
STACK_BYTES = 4 << 20
"""Of a compile child: a quarter of what an engine's loading threads have. The libraries recurse once for each link of a chain of rules, and
an overflow ends the process. A grammar that this is enough for must not end an engine, which reads it again."""


class Worker:
    """Made in the zygote, so that every child finds it warm. The memory limit is address space beyond what the zygote has."""

    def __init__(self, backends: Mapping[str, Backend], tokenizer: GrammarTokenizer, setup: Setup) -> None:
        self._backends = backends
        self._tokenizer = tokenizer
        self._setup = setup

    @property
    def fingerprint(self) -> str:
        return self._tokenizer.fingerprint

    def make_tables(self) -> None:
        """Those of the tokenizer's own sequences, before children are forked, which then find them."""
        with suppress(UnsupportedGrammar):  # each request that asks for them is told why
            _ = self._tokenizer.canonical

    def run(self, connection: socket.socket, background: bool) -> None:
        """Answer jobs until the other end closes, with no more than it has open: the connection, standard error, and what tells its own
        size. It dies on the limits that the compiler itself cannot answer for."""
        if background:
            _give_way()
        _limit_memory(self._setup.memory_limit_bytes)
        resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        with suppress(NotConfined):  # the zygote has found out, and told
            confine()
        try:
            with connection.makefile("rb") as jobs:
                while (task := read_task(jobs)) is not None:
                    connection.sendall(frame(self._answer(task)))
        except Exception:
            # The last frame of a forked process: its parent reads standard error when the connection breaks.
            traceback.print_exc()
            raise

    def _answer(self, task: Task) -> Result:
        try:
            if isinstance(task, Judging):
                return Judged(tuple(judged(task.spec, task.answers)))
            return self._resolved(task) if task.backend is None else self._compiled(task, self._backends[task.backend])
        except GrammarError as error:
            return Refused(Refusal.of(error))
        except MemoryError:
            return Refused(Refusal.of(CompileFailed("compiling the grammar took more memory than it may")))

    def _resolved(self, job: Job) -> Resolved:
        if job.relax is Relax.NOTHING:
            found = resolve(job.spec, self._setup.limits, self.fingerprint)
        else:
            compiles = self._compiles if job.relax is Relax.UNCOMPILED else None
            found = resolve_relaxed(job.spec, self._setup.limits, self.fingerprint, compiles)
        relaxed = found.spec if found.left_out else None
        return Resolved(found.key, found.backend, found.stopgap, found.library_source, found.warnings, relaxed, found.left_out)

    def _compiles(self, spec: GrammarSpec) -> None:
        name = select_backend(spec).name
        self._compiled(Job(spec, name), self._backends[name])

    def _compiled(self, job: Job, backend: Backend) -> Payload:
        if job.library_source is None:
            self._check(job.spec, backend)
        payload = backend.compile(job.spec, self._tokenizer, job.library_source)
        if len(payload.data) > self._setup.output_limit_bytes:
            raise GrammarTooLarge(f"the compiled grammar has {len(payload.data)} bytes, the limit is {self._setup.output_limit_bytes}")
        is_told = job.library_source is not None
        return Payload(None if is_told else grammar_key(job.spec, backend.name, backend.version, self.fingerprint), payload)

    def _check(self, spec: GrammarSpec, backend: Backend) -> None:
        check_limits(spec, self._setup.limits)
        if faults := backend.unsupported(spec):
            raise UnsupportedGrammar(faults[0].text, faults[0].pointer)


def _give_way() -> None:
    """Lower the priority against the whole machine: Linux weighs sessions first (autogroup), and processes within them."""
    os.setsid()
    os.nice(_BACKGROUND_NICE)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_BACKGROUND_NICE), encoding="ascii")


def _limit_memory(beyond_now: int) -> None:
    limit = address_space_bytes() + beyond_now
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
