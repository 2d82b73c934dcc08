"""The parent's end of the zygote: has children forked, and killed."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from grammar_service.errors import PoolUnavailable
from grammar_service.sandbox.child import ChildDied, CompileChild
from grammar_service.sandbox.wire import MAX_PACKET_BYTES, Done, Order, Ready, Setup

_PACKAGE_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "HF_HOME", "HF_HUB_CACHE")
_LOG = logging.getLogger(__name__)
_TAIL_LINES = 40
_ORDER_TIMEOUT_S = 10.0

M = TypeVar("M", bound=msgspec.Struct)


class Nursery:
    """One zygote, started when it is first needed and again when it has died."""

    def __init__(self, setup: Setup, start_timeout_s: float) -> None:
        self._setup = setup
        self._start_timeout_s = start_timeout_s
        self._zygote: asyncio.Task[Zygote] | None = None
        self._closed = False
        self._has_warned = False

    async def fingerprint(self) -> str:
        """The tokenizer's; waits for a warm zygote. Raises PoolUnavailable."""
        return (await self._warm()).fingerprint

    async def fork(self, background: bool) -> CompileChild:
        """A warm child. Raises PoolUnavailable."""
        for last in (False, True):
            zygote = await self._warm()
            try:
                return await zygote.fork(background, self._setup.output_limit_bytes)
            except (ChildDied, TimeoutError, OSError) as error:
                await zygote.kill()
                if last:
                    raise PoolUnavailable(f"no compile child can be forked: {error}") from None
        raise AssertionError("unreachable")

    async def make_tables(self) -> None:
        """Have the tables of the tokenizer's own sequences made where all children that are forked from now on find them; at once, if they
        have been. Raises PoolUnavailable."""
        zygote = await self._warm()
        try:
            await zygote.make_tables(self._start_timeout_s)
        except (ChildDied, TimeoutError, OSError) as error:
            await zygote.kill()
            raise PoolUnavailable(f"the tokenizer's tables cannot be made: {error}") from None
        self._setup = msgspec.structs.replace(self._setup, canonical=True)

    def fork_no_more(self) -> None:
        """A zygote that ends from here on has no successor: who waits for a child gets PoolUnavailable."""
        self._closed = True

    async def close(self) -> None:
        """Kill the zygote, and with it all children."""
        self.fork_no_more()
        if self._zygote is not None:
            self._zygote.cancel()
            with suppress(asyncio.CancelledError, ChildDied, TimeoutError, OSError):
                await (await self._zygote).kill()

    async def _warm(self) -> Zygote:
        if self._closed:
            raise PoolUnavailable("the compiler is closed")
        if self._zygote is None or _is_lost(self._zygote):
            self._zygote = asyncio.create_task(self._successor(self._zygote))
        try:
            return await asyncio.shield(self._zygote)
        except (ChildDied, TimeoutError, OSError) as error:
            raise PoolUnavailable(f"the compile child does not start: {error}") from None

    async def _successor(self, old: asyncio.Task[Zygote] | None) -> Zygote:
        if old is not None and not old.cancelled() and old.exception() is None:
            await old.result().kill()
        try:
            zygote = await self._spawned()
        except ChildDied:
            # Killed from outside, perhaps. What is wrong with the model will be so again.
            zygote = await self._spawned()
        if zygote.unconfined is not None and not self._has_warned:
            self._has_warned = True
            _LOG.warning("compile children have bounds on time, memory and descriptors alone: %s", zygote.unconfined)
        return zygote

    async def _spawned(self) -> Zygote:
        tokenizer = await asyncio.to_thread(self._setup.tokenizer.downloaded)
        return await Zygote.spawn(msgspec.structs.replace(self._setup, tokenizer=tokenizer), self._start_timeout_s)


class Zygote:
    """A running zygote. Make one with `spawn`; end it with `kill`, which leaves no zombie."""

    def __init__(self, process: asyncio.subprocess.Process, channel: socket.socket) -> None:
        self._process = process
        self._channel = channel
        self._lock = asyncio.Lock()
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._listener = asyncio.create_task(self._listen())
        self._making: asyncio.Task[None] | None = None
        self.fingerprint = ""
        self.unconfined: str | None = None
        self.has_tables = False

    @classmethod
    async def spawn(cls, setup: Setup, start_timeout_s: float) -> Zygote:
        """A warm zygote. Raises ChildDied or TimeoutError (no process is left), OSError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "grammar_service.sandbox.zygote"),
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(os.environ),
                start_new_session=True,  # a Ctrl-C at the terminal is the parent's to handle
            )
        zygote = cls(process, ours)
        try:
            ready = await zygote._ask(setup, Ready, start_timeout_s)
        except BaseException:
            await zygote.kill()
            raise
        zygote.fingerprint, zygote.unconfined, zygote.has_tables = ready.fingerprint, ready.unconfined, setup.canonical
        return zygote

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def fork(self, background: bool, output_limit_bytes: int) -> CompileChild:
        """Raises ChildDied, TimeoutError, OSError: the zygote is of no use any more."""
        ours, theirs = socket.socketpair()
        has_tables = self.has_tables
        try:
            with theirs:
                done = await self._ask(Order(background=background), Done, _ORDER_TIMEOUT_S, theirs)
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        return CompileChild(done.pid, reader, writer, self, output_limit_bytes, has_tables)

    async def make_tables(self, timeout_s: float) -> None:
        """Once, whoever of those that wait for it goes away; others are forked when it is done. Raises as `fork` does."""
        if self.has_tables:
            return
        if self._making is None:
            self._making = asyncio.create_task(self._make_tables(timeout_s))
            self._making.add_done_callback(lambda made: None if made.cancelled() else made.exception())
        await asyncio.shield(self._making)

    async def _make_tables(self, timeout_s: float) -> None:
        await self._ask(Order(tables=True), Done, timeout_s)
        self.has_tables = True

    async def reap(self, pid: int) -> None:
        """Kill a child that was forked here and wait for its end; it is dead already where the zygote is."""
        with suppress(ChildDied, TimeoutError, OSError):
            await self._ask(Order(reap=pid), Done, _ORDER_TIMEOUT_S)

    async def kill(self) -> None:
        """End the process and reap it; its children end with it."""
        self._end()
        await self._process.wait()
        async with self._lock:
            # Not under somebody who still waits for an answer: the event loop would take the next socket of that number for this one.
            self._channel.close()
        await self._listener

    def last_words(self) -> str:
        """The end of its and its children's standard error."""
        return b"".join(self._tail).decode("utf-8", "replace")

    async def _ask(self, message: msgspec.Struct, kind: type[M], timeout_s: float, sent_along: socket.socket | None = None) -> M:
        descriptors = [sent_along.fileno()] if sent_along else []
        async with self._lock:
            try:
                socket.send_fds(self._channel, [msgspec.msgpack.encode(message)], descriptors)
                async with asyncio.timeout(timeout_s):
                    answer = await asyncio.get_running_loop().sock_recv(self._channel, MAX_PACKET_BYTES)
            except ConnectionError:
                answer = b""
            except BaseException:
                # The answer is still to come, and whoever asks next would take it for his own.
                self._end()
                raise
        if not answer:
            raise ChildDied(f"the zygote has ended: {self.last_words()[-500:]}")
        return msgspec.msgpack.decode(answer, type=kind)

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _listen(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (chunk := await stderr.read(4096)):
            self._tail.append(chunk)


def _is_lost(zygote: asyncio.Task[Zygote]) -> bool:
    if not zygote.done():
        return False
    return zygote.cancelled() or zygote.exception() is not None or not zygote.result().is_alive


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Only what the children need: they handle strangers' text, so they get none of the service's secrets."""
    kept = {name: inherited[name] for name in _PASSED_ON if name in inherited}
    paths = [_PACKAGE_ROOT, *filter(None, [inherited.get("PYTHONPATH")])]
    # One thread everywhere: a process with threads cannot be forked.
    single = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return {**kept, **single, "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(paths)}
