"""The compile child: `python -m grammar_service.sandbox_child`, spoken to over its standard input and output.

It stays warm between jobs. It dies with its parent, at the end of its input, and on any limit that it runs into.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from grammar_service.backends import Backend, backend_named
from grammar_service.backends.xgrammar_backend import XgrammarBackend
from grammar_service.errors import CompileFailed, GrammarError, UnsupportedGrammar
from grammar_service.sandbox_wire import Job, Ready, Result, Setup, frame, read_frame
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.tokenizer import GrammarTokenizer

_PR_SET_PDEATHSIG = 1
_CACHE_SHARE = 8
"""The warm compiler's cache takes this fraction of the memory limit at most."""


def main() -> None:
    jobs, results = _take_pipes()
    setup = read_frame(jobs, Setup)
    if setup is None:
        return
    _die_with(setup.parent)
    tokenizer = GrammarTokenizer.load(setup.tokenizer_path, setup.vocab_size)
    compiler = XgrammarBackend(setup.threads, setup.memory_limit_bytes // _CACHE_SHARE)
    backends: dict[str, Backend] = {backend.name: backend for backend in (compiler, backend_named("llguidance"))}
    for backend in backends.values():
        backend.compile(GrammarSpec(GrammarKind.JSON_OBJECT, ""), tokenizer)
    _limit_memory(setup.memory_limit_bytes)
    _send(results, frame(Ready(tokenizer.fingerprint)))
    while (job := read_frame(jobs, Job)) is not None:
        _send(results, frame(_answer(job, backends, tokenizer)))


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes as streams; whatever native code prints goes to standard error instead."""
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return sys.stdin.buffer, results


def _die_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent died before the call above.
        os._exit(1)


def _limit_memory(beyond_now: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + beyond_now
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _send(results: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[results.write(view) :]


def _answer(job: Job, backends: dict[str, Backend], tokenizer: GrammarTokenizer) -> Result:
    spec = GrammarSpec(GrammarKind(job.kind), job.text, job.whitespace)
    try:
        backend = backends[job.backend]
        if faults := backend.unsupported(spec):
            raise UnsupportedGrammar(faults[0].message, faults[0].pointer)
        return Result(payload=backend.compile(spec, tokenizer))
    except GrammarError as error:
        return Result(code=error.code, message=error.message, pointer=error.pointer)
    except MemoryError:
        return Result(code=CompileFailed.code, message="compiling the grammar took more memory than it may")


if __name__ == "__main__":
    main()
