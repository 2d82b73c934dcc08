"""The zygote: `python -m grammar_service.sandbox.zygote`, a warm process that never sees a stranger's text.

It loads the vocabulary, warms the compilers up, and then only forks: a child is ready in milliseconds, however long the vocabulary
takes to load, and has the compilers' rule caches as hot as the zygote left them. It must stay single-threaded, since only the
forking thread lives on in a child. It ends with its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from importlib import import_module

import msgspec

from grammar_service.backends import Backend, backend_named
from grammar_service.backends.automata.backend import AutomataBackend
from grammar_service.backends.selection import AROUND
from grammar_service.backends.xgrammar.backend import XgrammarBackend
from grammar_service.heap import settle_heap
from grammar_service.sandbox.confinement import NotConfined, confine
from grammar_service.sandbox.prewarm import TYPICAL
from grammar_service.sandbox.wire import Done, Order, Ready, Setup, read_packet
from grammar_service.sandbox.worker import Worker
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

FIRST_IMPORTS = ("grammar_service.backends.automata.state_rows", "grammar_service.backends.canonical.product")
_PR_SET_PDEATHSIG = 1
_CONFINED = b"+"
_CACHE_SHARE = 8
"""A warm compiler's cache takes this fraction of the memory limit at most."""


def main() -> None:
    channel = _take_channel()
    opened = read_packet(channel, Setup)
    if opened is None:
        return
    setup = opened[0]
    end_with(setup.parent)
    worker = _warm_worker(setup)
    channel.send(msgspec.msgpack.encode(Ready(worker.fingerprint, _unconfined())))
    # What is here now is shared with all children: collecting garbage would only copy its pages.
    settle_heap()
    while (ordered := read_packet(channel, Order)) is not None:
        order, descriptors = ordered
        channel.send(msgspec.msgpack.encode(Done(_done(order, channel, descriptors, worker))))


def _done(order: Order, channel: socket.socket, descriptors: list[int], worker: Worker) -> int:
    """The process id that the answer tells."""
    if order.tables:
        worker.make_tables()
        settle_heap()
        return os.getpid()
    return _reap(order.reap) if order.reap is not None else _fork(channel, descriptors[0], worker, order.background)


def _take_channel() -> socket.socket:
    """What standard input was. A child keeps that, and must not have the channel: orders come by it, and the connections of others."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Whatever native code prints goes to standard error.
    os.dup2(2, 1)
    return channel


def _unconfined() -> str | None:
    """Why children cannot be confined here, as one that is forked to try finds; None where they can."""
    answer, told = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            confine()
            os.write(told, _CONFINED)
        except NotConfined as error:
            os.write(told, str(error).encode())
        finally:
            os._exit(0)
    os.close(told)
    found = os.read(answer, 1024)
    os.close(answer)
    os.waitpid(pid, 0)
    return None if found == _CONFINED else found.decode() or "the child that tried has died"


def end_with(parent: int) -> None:
    """Have this process killed when `parent`, its parent, ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent died before the call above.
        os._exit(1)


def _warm_worker(setup: Setup) -> Worker:
    tokenizer = GrammarTokenizer.load(setup.tokenizer)
    compiler = XgrammarBackend(setup.threads, setup.memory_limit_bytes // _CACHE_SHARE)
    backends: dict[str, Backend] = {backend.name: backend for backend in (compiler, backend_named("llguidance"))}
    for backend in backends.values():
        for spec in TYPICAL:
            if not backend.unsupported(spec):
                backend.compile(spec, tokenizer)
    backends["automata"] = AutomataBackend(compiler)
    _ = tokenizer.trie
    if tokenizer.special_tokens:  # more than a second, for the first tag that names one
        _ = tokenizer.xgrammar_with_specials
    # A child that is confined opens no files: what a backend imports with its first grammar must be here.
    for module in FIRST_IMPORTS:
        import_module(module)
    around = [kind(backend) for kind in AROUND for backend in backends.values()]
    worker = Worker({**backends, **{backend.name: backend for backend in around}}, tokenizer, setup)
    if setup.canonical:
        worker.make_tables()
    return worker


def _fork(channel: socket.socket, jobs: int, worker: Worker, background: bool) -> int:
    zygote = os.getpid()
    pid = os.fork()
    if pid:
        os.close(jobs)
        return pid
    status = 1
    try:
        channel.close()
        end_with(zygote)
        worker.run(socket.socket(fileno=jobs), background)
        status = 0
    finally:
        # Never back into the zygote's loop, whatever happens.
        os._exit(status)


def _reap(pid: int) -> int:
    # It is a child that nobody else waits for, so that the id cannot have passed to another process.
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return pid


if __name__ == "__main__":
    main()
